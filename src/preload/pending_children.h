// Communicators that the vendor is making of others, whose handles are not known yet.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "preload/making.h"

namespace falcon::preload {

struct PendingChild {
  std::shared_ptr<Making> making;
  ncclComm_t* output = nullptr;  ///< where the vendor will write the handle
  const front::VendorQuestions* questions = nullptr;
  ncclComm_t handle = nullptr;  ///< what the vendor has written there, as far as it was seen
};

/// Of the vendor's that goes on after its function has returned (nonblocking): a child is known by its handle when the
/// application first uses that. One a process. Thread-safe.
class PendingChildren {
 public:
  void add(PendingChild child);
  bool any() const { return count_.load(std::memory_order_relaxed) > 0; }
  /// The child whose output holds `handle`, or has held it: the application has it from there. An output is read until
  /// something stands there, and with care, since it may be gone.
  std::optional<PendingChild> take(ncclComm_t handle);
  /// As long as the making waits for the handle, and so many: who is then not found is not watched.
  static constexpr std::size_t most = 256;
  void forgetAll();

 private:
  void look();

  std::mutex mutex_;
  std::atomic<int> count_{0};
  std::vector<PendingChild> children_;
};

}  // namespace falcon::preload
