#include "run/environment.h"

#include "base/format.h"

extern char** environ;

namespace falcon::tools {

namespace {

// Tells a `falcon run` inside a rank which name this one would make up.
constexpr char madeUpName[] = "FALCON_RUN_JOB";

std::string makeUpName(const std::string& run) {
  return "run-" + run;
}

}  // namespace

Environment ownEnvironment() {
  Environment found;
  for (char** entry = environ; *entry; ++entry) {
    const std::string text = *entry;
    const auto equals = text.find('=');
    if (equals != std::string::npos) found[text.substr(0, equals)] = text.substr(equals + 1);
  }
  return found;
}

std::string jobNameOf(const Environment& inherited, const std::string& run) {
  const auto named = inherited.find("NCCL_FALCON_JOB");
  const auto madeUp = inherited.find(madeUpName);
  if (named == inherited.end() || named->second.empty()) return makeUpName(run);
  if (madeUp != inherited.end() && madeUp->second == named->second) return makeUpName(run);
  return named->second;
}

Environment environmentOf(const RankPlacement& place, const JobSettings& job, const Environment& inherited) {
  Environment set{
      {"RANK", std::to_string(place.rank)},
      {"WORLD_SIZE", std::to_string(job.ranks)},
      {"LOCAL_RANK", std::to_string(place.localRank)},
      {"LOCAL_WORLD_SIZE", std::to_string(place.localSize)},
      {"MASTER_ADDR", job.masterAddress},
      {"MASTER_PORT", std::to_string(job.masterPort)},
      {"NCCL_FALCON_JOB", job.job},
      {madeUpName, makeUpName(job.run)},
  };
  if (!inherited.contains("NCCL_FALCON")) set["NCCL_FALCON"] = "1";
  const auto is = [&](const char* name, const char* value) {
    const auto found = inherited.find(name);
    return found != inherited.end() && found->second == value;
  };
  // A profiler's own stays: NVTX takes one library.
  if (!inherited.contains("NVTX_INJECTION64_PATH") && !is("NCCL_FALCON", "0") && !is("NCCL_FALCON_NVTX", "off"))
    set["NVTX_INJECTION64_PATH"] = job.libraryFolder + "/libnccl.so.2";
  // Who names a rendezvous by hand may have ranks elsewhere, which must know the same.
  if (!inherited.contains("NCCL_FALCON_SECRET") && !inherited.contains("NCCL_COMM_ID") && !job.secret.empty())
    set["NCCL_FALCON_SECRET"] = job.secret;
  if (job.restarts > 0) {
    set["TORCHELASTIC_RESTART_COUNT"] = std::to_string(job.restarted);
    set["TORCHELASTIC_MAX_RESTARTS"] = std::to_string(job.restarts);
    set["NCCL_FALCON_RESTART_FILE"] = job.restartFile;
  }
  const auto libraries = inherited.find("LD_LIBRARY_PATH");
  set["LD_LIBRARY_PATH"] = job.libraryFolder;
  if (libraries != inherited.end() && !libraries->second.empty()) set["LD_LIBRARY_PATH"] += ":" + libraries->second;
  if (job.nodes > 0) {
    // Nodes on one machine share host name, boot id and /dev/shm: only this tells them apart.
    set["NCCL_HOSTID"] = fmt::format("node{}-{}", place.node, job.run);
    set["NCCL_SOCKET_IFNAME"] = "=" + interfaceOf(place.place);
  }
  return set;
}

}  // namespace falcon::tools
