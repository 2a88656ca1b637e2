// What a job that asks to be started again leaves for whoever starts it: one JSON object in a file.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/types.h"

namespace falcon::reshape {

struct LeftOutRank {
  Rank rank = -1;  ///< of the job
  std::string host;
  int device = 0;
};

struct RestartRequest {
  std::string job;
  std::vector<LeftOutRank> leaveOut;       ///< whose places somebody else is to take; empty: nobody's
  std::string checkpointFolder;            ///< "": there is none
  std::optional<std::uint64_t> iteration;  ///< of the newest checkpoint that is complete
};

/// {"v":1,"job":"...","leave_out":[{"rank":3,"host":"node-7","device":0}],"checkpoint":{"folder":"...","iteration":40}}
/// Without a checkpoint that entry is null.
std::string toJson(const RestartRequest& request);

/// As a whole: who reads it sees all of it or nothing.
Status writeRestartRequest(const std::string& path, const RestartRequest& request);

}  // namespace falcon::reshape
