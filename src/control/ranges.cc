#include "control/ranges.h"

#include <atomic>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "base/log.h"

namespace falcon::control {
namespace {

// Plain atomics, and no object behind a lock: this is the application's path.
constinit std::atomic<instrument::RangeLog*> current{nullptr};
constinit std::atomic<int> users{0};

constexpr int deepest = 32;  // ranges inside of ranges; deeper ones are counted, not recorded

struct Open {
  std::uint32_t name = 0;
  std::int64_t begin = 0;
};
struct Thread {
  Open open[deepest] = {};
  int depth = 0;
  std::uint64_t log = 0;  // of which the open ranges are: another one knows other numbers for the names
};
constinit thread_local Thread thread;
constinit std::atomic<std::uint64_t> logs{0};

std::int64_t nowNanoseconds() {
  return SystemClock::instance().now().count();
}

/// Holds the log in place while it is written to.
class Use {
 public:
  Use() {
    users.fetch_add(1, std::memory_order_seq_cst);
    log_ = current.load(std::memory_order_seq_cst);
    if (log_ && thread.log != logs.load(std::memory_order_relaxed)) {
      thread.log = logs.load(std::memory_order_relaxed);
      thread.depth = 0;
    }
  }
  ~Use() { users.fetch_sub(1, std::memory_order_release); }
  Use(const Use&) = delete;
  Use& operator=(const Use&) = delete;
  instrument::RangeLog* log() const { return log_; }

 private:
  instrument::RangeLog* log_;
};

}  // namespace

void Ranges::begin(const char* name) {
  if (!current.load(std::memory_order_relaxed)) return;
  const Use use;
  if (!use.log()) return;
  if (thread.depth < deepest) thread.open[thread.depth] = {use.log()->nameOf(name), nowNanoseconds()};
  ++thread.depth;
}

Status Ranges::end() {
  if (!current.load(std::memory_order_relaxed)) return {};
  const Use use;
  if (!use.log()) return {};
  if (thread.depth == 0) {
    static constinit std::atomic<bool> told{false};
    auto error = Error::invalidUsage(
        "ncclFalconRangeEnd: this thread has no range open; was it begun on another thread, or before the first "
        "communicator?");
    return told.exchange(true) ? error : log::decided(std::move(error));
  }
  if (--thread.depth < deepest) {
    const Open& open = thread.open[thread.depth];
    use.log()->write(
        {open.name, static_cast<std::uint32_t>(thread.depth), Nanoseconds(open.begin), Nanoseconds(nowNanoseconds())});
  }
  return {};
}

bool Ranges::useLog(instrument::RangeLog* log) {
  if (log) {
    logs.fetch_add(1, std::memory_order_relaxed);
    current.store(log, std::memory_order_seq_cst);
    return true;
  }
  current.store(nullptr, std::memory_order_seq_cst);
  constexpr int patience = 1000;  // 0.1 s
  for (int i = 0; users.load(std::memory_order_acquire) > 0; ++i) {
    if (i == patience) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  return true;
}

void Ranges::childBegins() {
  current.store(nullptr, std::memory_order_relaxed);
  users.store(0, std::memory_order_relaxed);
}

}  // namespace falcon::control
