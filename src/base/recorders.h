// The seams through which the engines tell what they do. The engines know only these; instrument and control implement
// them.
#pragma once

#include <atomic>

#include "base/call.h"
#include "base/calling_thread.h"
#include "base/transfer.h"

namespace falcon {

/// A call between its entry and its end, and the thread that makes it; what they mean is the recorder's business.
struct Flight {
  std::int32_t at = -1;
  CallingThread* thread = nullptr;  ///< null: of no call that was entered

  bool operator==(const Flight& other) const { return at == other.at; }
};
inline constexpr Flight noFlight;
/// Where a recorder keeps a communicator; noPlace where it does not.
inline constexpr int noPlace = -1;

/// Told of every call, by the thread that makes it. Implementations are lock-free and never block: they sit on the
/// job's critical path. All of a call together: 100 ns.
class CallRecorder {
 public:
  virtual ~CallRecorder() = default;
  /// Before the call begins, by the thread that makes it; `leave` is not known yet, `thread` is filled in. So an
  /// observer sees who waits in what.
  virtual Flight enter(CallingThread& thread, CallRecord& call, int place) noexcept = 0;
  Flight enter(CallRecord& call, int place) noexcept { return enter(CallingThread::own(), call, place); }
  /// After enter(), of a call that has labels; most have none.
  virtual void label(const LabelledCall&) noexcept {}
  /// After it is complete.
  virtual void leave(Flight flight, const CallRecord& call) noexcept = 0;
  /// Instead of leave(): it has failed.
  virtual void fail(Flight flight, const CallRecord& call, int place) noexcept = 0;
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
