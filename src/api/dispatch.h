// Hands calls to the engines, past the hold point and the call recorder; the same for both engines.
#pragma once

#include <span>

#include "api/call_settings.h"
#include "api/communicator.h"
#include "api/host_stream.h"
#include "base/call.h"

namespace falcon::api {

/// A checked call that waits for its group's end.
struct PendingCall {
  ncclComm* communicator = nullptr;
  Call call;
  void* stream = nullptr;
  std::shared_ptr<HostStream> hostStream{};  ///< where `stream` names one
  CallSettings settings{};                   ///< where it has some of its own

  /// Of its communicator, which is watched.
  CallCounts& counts() const { return *communicator->counts; }
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
