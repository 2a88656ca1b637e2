#include "run/environment.h"

#include "base/format.h"

namespace falcon::tools {

Environment environmentOf(const Place& place, const JobSettings& job, const Environment& inherited) {
  Environment set{
      {"RANK", std::to_string(place.rank)},
      {"WORLD_SIZE", std::to_string(job.ranks)},
      {"LOCAL_RANK", std::to_string(place.localRank)},
      {"LOCAL_WORLD_SIZE", std::to_string(place.localSize)},
      {"MASTER_ADDR", job.masterAddress},
      {"MASTER_PORT", std::to_string(job.masterPort)},
      {"NCCL_FALCON_JOB", job.job},
  };
  if (!inherited.contains("NCCL_FALCON")) set["NCCL_FALCON"] = "1";
  const auto libraries = inherited.find("LD_LIBRARY_PATH");
  set["LD_LIBRARY_PATH"] = job.libraryFolder;
  if (libraries != inherited.end() && !libraries->second.empty()) set["LD_LIBRARY_PATH"] += ":" + libraries->second;
  if (job.nodes > 0) {
    // Nodes on one machine share host name, boot id and /dev/shm: only this tells them apart.
    set["NCCL_HOSTID"] = fmt::format("node{}-{}", place.node, job.run);
    set["NCCL_SOCKET_IFNAME"] = "=" + interfaceOf(place.rank);
  }
  return set;
}

}  // namespace falcon::tools
