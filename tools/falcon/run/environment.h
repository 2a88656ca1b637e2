// The variables a rank finds in its environment: a pure function.
#pragma once

#include <map>
#include <string>

#include "run/placement.h"

namespace falcon::tools {

/// What all ranks of the job share.
struct JobSettings {
  std::string run;  ///< unique on this machine
  std::string job;  ///< NCCL_FALCON_JOB
  int ranks = 1;
  int nodes = 0;
  std::string masterAddress;
  int masterPort = 0;
  std::string libraryFolder;  ///< comes first in LD_LIBRARY_PATH
  std::string secret{};       ///< NCCL_FALCON_SECRET
  int restarts = 0;           ///< that may be; 0: nothing of them is said
  int restarted = 0;          ///< so often by now
  std::string restartFile{};  ///< NCCL_FALCON_RESTART_FILE
};

using Environment = std::map<std::string, std::string>;

/// This process's own variables.
Environment ownEnvironment();

/// The job's name: the user's in NCCL_FALCON_JOB, else "run-<run>". One that a `falcon run` around this one made up is
/// no user's: two jobs must not share it.
std::string jobNameOf(const Environment& inherited, const std::string& run);

/// The variables to set for one rank, on top of `inherited`. What a user may choose is set only where it is not yet.
Environment environmentOf(const RankPlacement& place, const JobSettings& job, const Environment& inherited);

}  // namespace falcon::tools
