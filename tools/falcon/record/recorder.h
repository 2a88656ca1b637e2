// Follows the call logs of a job for a while.
#pragma once

#include <string>
#include <vector>

#include "base/clock.h"
#include "instrument/rank_snapshot.h"

namespace falcon::record {

/// The logs in the files `paths` as they are after `span`, with all calls that ended meanwhile; for a span of 0, with
/// all that the logs still have. Ends early where all processes have ended. `missed`: calls that were overwritten
/// before they were read.
std::vector<instrument::RankSnapshot> follow(const std::vector<std::string>& paths, Nanoseconds span, Clock& clock,
                                             std::uint64_t& missed);

}  // namespace falcon::record
