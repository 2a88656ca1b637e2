// What a rank did with its time lately, from the call logs of the job.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "instrument/rank_snapshot.h"

namespace falcon::top {

/// Shares are of the span that was looked at, 0 to 1. Calls of a group count once.
struct RankLoad {
  double span = 0;  ///< seconds that were looked at; 0: no call in them
  double callsPerSecond = 0;
  double inside = 0;  ///< in the library
  /// Of the calls whose other ends are in the logs too; nothing where these are less than half of the time inside:
  std::optional<double> waiting;   ///< until the last member had come
  std::optional<double> transfer;  ///< after that
  std::optional<double> lag;       ///< seconds after the first member that it comes to a collective, on average
};

/// By snapshot; over the last `window` of each. Only ranks of one host are compared: their clock is the same.
std::vector<RankLoad> loadsOf(std::span<const instrument::RankSnapshot> ranks, Nanoseconds window);

}  // namespace falcon::top
