// `falcon status [JOB]`, `falcon off JOB`, `falcon suspend JOB` and `falcon resume JOB`.
#pragma once

#include <string>

namespace falcon::jobs {

/// Prints the jobs of this user (or one) as a table or as JSON. 0 healthy, 3 when a running job has an active
/// fail-slow, 1 when the named job is not there.
int showStatus(const std::string& job, bool json);

/// Switches Falcon off in a running job and waits until it is. 0 done, 1 not there or no answer within 10 s.
int switchOff(const std::string& job);

/// Holds a running job for `seconds` at most, and waits until all of it is held. 0 done; 1 not there, suspended
/// already, or not all ranks came.
int suspend(const std::string& job, int seconds);
/// Lets it go, and waits until it is. 0 done, 1 not there or not suspended.
int resume(const std::string& job);

}  // namespace falcon::jobs
