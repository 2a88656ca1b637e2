// The seams through which the engines tell what they do. The engines know only these; instrument and control implement
// them.
#pragma once

#include <atomic>

#include "base/call.h"
#include "base/transfer.h"

namespace falcon {

/// Told of every call. Implementations are lock-free and never block: they sit on the job's critical path.
class CallRecorder {
 public:
  virtual ~CallRecorder() = default;
  /// Called by the thread that made the call, after it is complete. Cost target: 100 ns.
  virtual void record(const CallRecord& record) noexcept = 0;
};

/// Told of transfers while profiling is on.
class TransferRecorder {
 public:
  virtual ~TransferRecorder() = default;
  /// One relaxed load; engines take no time stamps while this is false.
  bool enabled() const noexcept { return enabled_.load(std::memory_order_relaxed); }
  virtual void record(const TransferTiming& timing) noexcept = 0;

 protected:
  std::atomic<bool> enabled_{false};
};

}  // namespace falcon
