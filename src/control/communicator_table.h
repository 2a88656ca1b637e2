// The communicators of this process that Falcon may look into, guarded against their destruction.
#pragma once

#include <functional>
#include <mutex>
#include <optional>
#include <vector>

#include "control/job.h"

namespace falcon::control {

/// Thread-safe. While the monitor is inside with(), remove() waits: a membership is never used after it is gone. So
/// what takes long is not done there: CommInit and CommDestroy would wait for it.
class CommunicatorTable {
 public:
  void add(KnownCommunicator communicator) {
    const std::lock_guard lock(mutex_);
    entries_.push_back(std::move(communicator));
  }
  /// The entry that was removed, with its id; nothing when it was never added.
  std::optional<CommunicatorId> remove(const Membership& membership) {
    const std::lock_guard lock(mutex_);
    for (auto entry = entries_.begin(); entry != entries_.end(); ++entry) {
      if (entry->membership != &membership) continue;
      const CommunicatorId id = membership.id();
      entries_.erase(entry);
      return id;
    }
    return std::nullopt;
  }
  /// Runs `use` on the communicators with that id (several when ranks are threads of one process), under the lock.
  void with(CommunicatorId id, const std::function<void(KnownCommunicator&)>& use) {
    const std::lock_guard lock(mutex_);
    for (KnownCommunicator& entry : entries_)
      if (entry.membership->id() == id) use(entry);
  }
  void withAll(const std::function<void(std::vector<KnownCommunicator>&)>& use) {
    const std::lock_guard lock(mutex_);
    use(entries_);
  }

 private:
  std::mutex mutex_;
  std::vector<KnownCommunicator> entries_;
};

}  // namespace falcon::control
