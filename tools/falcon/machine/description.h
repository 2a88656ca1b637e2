// What `falcon run --describe FILE` tells other programs about a running job.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "base/types.h"

namespace falcon::tools {

/// One rank of the job. Texts are empty where the job runs without nodes or cgroups.
struct RankDescription {
  Rank rank = -1;
  int process = -1;
  int node = 0;
  std::string netNamespace;  ///< path to open, e.g. /proc/<supervisor>/fd/7
  std::string interface;     ///< name inside the namespace
  std::string address;       ///< IPv4
  std::string cgroup;        ///< folder of the rank's cpu cgroup
};

struct JobDescription {
  std::string job;    ///< NCCL_FALCON_JOB
  std::string run;    ///< unique on this machine
  int launcher = -1;  ///< process to signal
  int supervisor = -1;
  int nodes = 0;                       ///< 0: no nodes
  std::vector<RankDescription> ranks;  ///< ranks[r].rank == r
  std::string path{};                  ///< the file it was read from
};

std::string toJson(const JobDescription& job);
/// An error names what is missing or wrong.
Result<JobDescription> parseDescription(const std::string& json);

/// Writes the file in one step: readers see all of it or the old one.
Status writeDescription(const JobDescription& job, const std::string& path);
Result<JobDescription> readDescription(const std::string& path);

/// The rank's entry, or an error that says which ranks there are.
Result<RankDescription> rankOf(const JobDescription& job, Rank rank);

}  // namespace falcon::tools
