// Calls on host streams: queued now, run later by a stream's thread.
#pragma once

#include <vector>

#include "api/dispatch.h"

namespace falcon::api {

/// What `stream`, which is not NULL, is for a call of this communicator: a host stream, or null (the vendor's).
/// Errors (invalidArgument): destroyed; neither a host stream nor anything else that this communicator can use.
Result<std::shared_ptr<HostStream>> streamFor(const char* function, const ncclComm& communicator, const void* stream);

/// Takes the calls of an outermost group of which at least one names a host stream. They are one piece of work, in the
/// order of all streams and of all communicators that they name. Calls for the vendor's engine are handed to it at
/// once. Where calls name no stream, blocking communicators wait for the work and give its outcome; others say
/// inProgress. Errors: those of a broken communicator or of wrong arguments; then nothing was queued. The lists are the
/// caller's to empty and to use again.
Status queueCalls(std::vector<PendingCall>& calls, std::vector<CommunicatorUse>& inUse, bool blocking);

/// Blocks until what is queued for the communicator is done. One load where nothing is.
inline void awaitQueued(ncclComm& communicator) {
  if (!communicator.lane.empty()) [[unlikely]]
    communicator.lane.wait(communicator.hooks.hold);
}

}  // namespace falcon::api
