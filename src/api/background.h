// Calls of nonblocking communicators: they work on a thread of their own while ncclCommGetAsyncError says inProgress.
#pragma once

#include <functional>
#include <vector>

#include "api/communicator.h"

namespace falcon::api {

/// The communicators (ready; several uses of one are fine) count as at work until `work` has returned; its outcome is
/// then theirs. Gives inProgress. Where no thread can be had, `work` is done at once.
Status runInBackground(std::vector<CommunicatorUse> communicators, std::function<Status()> work);

}  // namespace falcon::api
