// Recordings of `falcon record`, one of each host.
#pragma once

#include <string>
#include <vector>

#include "instrument/rank_snapshot.h"

namespace falcon::jobs {

/// The whole ranks of all files together. A file that is cut is told of on stderr.
Result<std::vector<instrument::RankSnapshot>> readRecordings(const std::vector<std::string>& paths);

}  // namespace falcon::jobs
