// Recordings of `falcon record`, one of each host.
#pragma once

#include <string>
#include <vector>

#include "instrument/rank_snapshot.h"

namespace falcon::jobs {

/// The ranks of all files together.
Result<std::vector<instrument::RankSnapshot>> readRecordings(const std::vector<std::string>& paths);

}  // namespace falcon::jobs
