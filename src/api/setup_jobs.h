// Runs the making of communicators: several at once where a group has several, in the background where they do not
// block.
#pragma once

#include "api/group.h"

namespace falcon::api {

/// Blocking: returns when all are made, with the first error; outputs are set for those that were made. Nonblocking:
/// sets all outputs and gives inProgress; the outcome is told by ncclCommGetAsyncError.
Status runSetupJobs(std::vector<SetupJob> jobs, bool blocking);

}  // namespace falcon::api
