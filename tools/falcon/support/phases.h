// How ranks spent a stretch of time that all of their call logs cover.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "instrument/range_log.h"
#include "instrument/timeline.h"

namespace falcon::support {

using Phase = std::pair<CommunicatorId, Operation>;

struct RankPhases {
  Rank rank = -1;
  double outside = 0;              ///< share of the time in no call of the library, 0 to 1
  std::map<Phase, double> inside;  ///< share of the time; calls of several threads may overlap
};

/// The longest stretch that lies in all ranks' calls; start == end where there is none.
std::pair<Nanoseconds, Nanoseconds> commonStretch(const std::vector<instrument::RankTimeline>& ranks);

/// @param timeline  with start < end
std::vector<RankPhases> phasesOf(const instrument::JobTimeline& timeline);

/// Share of the time from start to end, 0 to 1, in each of the application's ranges (ncclFalconRangeBegin). Ranges
/// inside of ranges count for both; those of several threads may overlap. Where the log holds less than that time, of
/// what it holds. Empty where it holds nothing of it.
std::map<std::string, double> rangeShares(const instrument::RangeLogView& log, Nanoseconds start, Nanoseconds end);

}  // namespace falcon::support
