// Victims that no `falcon run --describe` describes: any process of this user, and ranks of any job with a call log.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "machine/description.h"

namespace falcon::tools {

/// Refuses what is not this user's, kernel threads, and this process's own ancestors, with the reason.
Status mayBeHarmed(pid_t process);

/// The process as rank 0 of a job of its own.
Result<JobDescription> describeProcess(pid_t process);

/// The ranks on this host of a running job, as their call logs tell. Ranks elsewhere have no process. Addresses and
/// interfaces are there for ranks in network namespaces of their own.
/// @param victim  its end is the end of the injection
Result<JobDescription> describeJob(const std::string& job, Rank victim);

/// What a job's call logs say of its iterations; zeros where that is not known.
struct Iterations {
  double seconds = 0;  ///< the last one took, on the rank where it took longest
  std::int64_t ended = 0;
};
Iterations iterationsOf(const std::string& job);

// For tests.

struct Interface {
  std::string name;
  std::string address;
};
/// Reads `ip -o -4 address show`; loopback is left out.
std::vector<Interface> parseInterfaces(const std::string& text);
/// The one that NCCL_SOCKET_IFNAME names ("=eth0" or a prefix), else the first; nothing of nothing.
Interface chooseInterface(const std::vector<Interface>& interfaces, const std::string& wish);

}  // namespace falcon::tools
