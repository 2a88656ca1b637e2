#include "front/layouts.h"

#include <sched.h>
#include <unistd.h>

#include "front/atomics.h"

namespace falcon::front {
namespace {

/// An entry is read and written by who has taken it. A communicator has one at most.
struct Entry {
  Atomic<int> taken;  ///< by a thread of this process; 0: by nobody
  ncclComm_t communicator;
  bool hasLayout;
  ncclFalconLayout_t layout;
  Iterations iterations;
};
Entry entries[256];
Atomic<int> used;  ///< entries from here on were never used

class Taken {
 public:
  explicit Taken(Entry& entry) : entry_(entry) {
    const int self = getpid();
    while (true) {
      // A thread that held it while this process was forked is not in it.
      const int by = entry_.taken.load();
      if (by != self && entry_.taken.replace(by, self)) return;
      sched_yield();
    }
  }
  ~Taken() { entry_.taken.store(0); }
  Taken(const Taken&) = delete;
  Taken& operator=(const Taken&) = delete;

 private:
  Entry& entry_;
};

constexpr int capacity = static_cast<int>(sizeof entries / sizeof entries[0]);

/// Runs `work` on the entry of the communicator; false: it has none.
template <class Work>
bool with(ncclComm_t communicator, Work work) {
  const int count = used.load();
  for (int i = 0; i < count; ++i) {
    const Taken taken(entries[i]);
    if (entries[i].communicator != communicator) continue;
    work(entries[i]);
    return true;
  }
  return false;
}

/// Runs `work` on the entry of the communicator, which gets one where it has none. False: there is no room.
template <class Work>
bool keep(ncclComm_t communicator, Work work) {
  if (with(communicator, work)) return true;
  const auto begin = [&](Entry& entry) {
    entry.communicator = communicator;
    entry.hasLayout = false;
    entry.iterations = {};
    work(entry);
  };
  if (with(nullptr, begin)) return true;
  for (int count = used.load(); count < capacity; count = used.load()) {
    const Taken taken(entries[count]);
    if (entries[count].communicator || used.load() != count) continue;
    begin(entries[count]);
    used.store(count + 1);
    return true;
  }
  return false;
}

}  // namespace

bool keepLayout(ncclComm_t communicator, const ncclFalconLayout_t& layout) {
  return keep(communicator, [&](Entry& entry) {
    entry.hasLayout = true;
    entry.layout = layout;
  });
}

bool layoutOf(ncclComm_t communicator, ncclFalconLayout_t& layout) {
  bool isThere = false;
  const auto look = [&](const Entry& entry) {
    isThere = entry.hasLayout;
    if (isThere) layout = entry.layout;
  };
  return communicator && with(communicator, look) && isThere;
}

bool keepCallback(ncclComm_t communicator, Iterations::Callback callback, void* context, unsigned int flags) {
  const auto tell = [&](Entry& entry) { entry.iterations.tell(callback, context, flags); };
  if (!callback) return with(communicator, tell), true;
  return keep(communicator, tell);
}

bool withIterations(ncclComm_t communicator, void (*work)(Iterations& iterations, void* context), void* context) {
  return with(communicator, [&](Entry& entry) { work(entry.iterations, context); });
}

void forgetLayout(ncclComm_t communicator) {
  if (used.load() > 0 && communicator) with(communicator, [](Entry& entry) { entry.communicator = nullptr; });
}

}  // namespace falcon::front
