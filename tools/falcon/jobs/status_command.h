// `falcon status [JOB]` and `falcon off JOB`.
#pragma once

#include <string>

namespace falcon::jobs {

/// Prints the jobs of this user (or one) as a table or as JSON. 0 healthy, 3 when a running job has an active
/// fail-slow, 1 when the named job is not there.
int showStatus(const std::string& job, bool json);

/// Switches Falcon off in a running job and waits until it is. 0 done, 1 not there or no answer within 10 s.
int switchOff(const std::string& job);

}  // namespace falcon::jobs
