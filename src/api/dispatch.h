// Hands calls to the engines, past the hold point and the call recorder; the same for both engines.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "api/call_settings.h"
#include "api/communicator.h"
#include "api/host_stream.h"
#include "base/call.h"
#include "base/counter_clock.h"
#include "base/entered_calls.h"
#include "control/handed_calls.h"
#include "control/vendor_events.h"

namespace falcon::api {

/// A checked call that waits for its group's end.
struct PendingCall {
  PendingCall() {}  // NOLINT(modernize-use-equals-default): a defaulted one is zeroed first, a fifth of a watched call
  PendingCall(ncclComm* itsCommunicator, const Call& itsCall, void* itsStream = nullptr)
      : communicator(itsCommunicator), call(itsCall), stream(itsStream) {}

  ncclComm* communicator = nullptr;
  Call call;
  void* stream = nullptr;
  std::shared_ptr<HostStream> hostStream{};  ///< where `stream` names one
  CallSettings settings{};                   ///< where it has some of its own

  const Call& counted() const { return call; }
  /// Of its communicator, which is watched.
  CallCounts& counts() const { return *communicator->counts; }
  /// Its communicator is gone: it will fail.
  bool isCalledOff() const noexcept { return communicator->aborted.load(std::memory_order_relaxed); }
};

/// What the vendor's library may tell its profiler of, while these run.
class PendingHanded final : public control::HandedCalls {
 public:
  PendingHanded(control::VendorEvents& events, std::span<const PendingCall> calls,
                std::span<const std::uint64_t> numbers, Nanoseconds now);

 private:
  std::optional<Named> find(const control::ToldCall& told) override;

  const std::span<const PendingCall> calls_;
  const std::span<const std::uint64_t> numbers_;
  std::vector<bool> told_;
  int next_ = 0;  ///< most likely
};

/// Around one watched call outside of groups, as nearly all are: nothing is allocated. Used by the thread that calls.
class WatchedCall {
 public:
  /// It is entered: counted, held while the job is held, and in the log. `pending` outlives this.
  explicit WatchedCall(const PendingCall& pending);
  /// It has come to its end; without that it has failed.
  void leave();
  ~WatchedCall() {
    if (hold_) hold_->leaveCall();
  }
  WatchedCall(const WatchedCall&) = delete;
  WatchedCall& operator=(const WatchedCall&) = delete;

 private:
  CounterClock<>& clock_;
  HoldPoint* const hold_;
  Nanoseconds enteredAt_;
  std::uint64_t number_;
  EnteredCalls<PendingCall> entered_;
  LoggedCall logged_;
  std::optional<PendingHanded> handed_;
};

/// Runs one call, or all calls of an outermost group, after what is queued for their communicators. These are in use
/// and ready. Gives the first error.
Status runCalls(std::span<const PendingCall> calls);
/// The same for one call on no stream outside of groups, of a communicator that is plain.
Status runPlain(ncclComm& communicator, const Call& call);
/// The same for calls whose turn it is.
Status runNow(std::span<const PendingCall> calls);

/// What their engines find wrong with running these calls as one group, before anything happens.
Status checkCalls(std::span<const PendingCall> calls);

/// Microseconds that the calls would take; nothing runs. Engines work side by side.
Result<float> estimateCalls(std::span<const PendingCall> calls);

}  // namespace falcon::api
