// Communicators that the vendor is making of others, whose handles are not known yet.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "preload/making.h"

namespace falcon::preload {

/// One a process. Thread-safe.
class PendingChildren {
 public:
  struct Child {
    std::shared_ptr<Making> making;
    ncclComm_t* output = nullptr;  ///< where the vendor will write the handle
    const front::VendorQuestions* questions = nullptr;
  };

  void add(Child child);
  bool any() const { return count_.load(std::memory_order_relaxed) > 0; }
  /// The child whose output holds `handle`: the application has it from there. Outputs are read with care, since that
  /// of an old one may be gone.
  std::optional<Child> take(ncclComm_t handle);
  /// Some are too many: they were made, and never used, or their making has failed.
  static constexpr std::size_t most = 1024;
  void forgetAll();

 private:
  std::mutex mutex_;
  std::atomic<int> count_{0};
  std::vector<Child> children_;
};

}  // namespace falcon::preload
