// Hands calls to the engines, past the hold point and the call recorder; the same for both engines.
#pragma once

#include <span>

#include "api/communicator.h"
#include "base/call.h"

namespace falcon::api {

/// A checked call that waits for its group's end.
struct PendingCall {
  ncclComm* communicator = nullptr;
  Call call;
  void* stream = nullptr;
};

/// Runs one call, or all calls of an outermost group. The communicators are in use and ready. Gives the first error.
Status runCalls(std::span<const PendingCall> calls);

/// Microseconds that the calls would take; nothing runs. The host engine's by collectives::estimatedMicroseconds().
Result<float> estimateCalls(std::span<const PendingCall> calls);

}  // namespace falcon::api
