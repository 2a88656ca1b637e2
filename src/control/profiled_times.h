// How an iteration divides between a rank's own work and its communicators, by the calls of a profile.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "instrument/timeline.h"

namespace falcon::control {

/// Seconds an iteration.
struct ProfiledTimes {
  double outside = 0;  ///< in no call
  std::map<CommunicatorId, double> inCalls;
  double calls = 0;  ///< how many there are
};

/// Of the whole iterations at the end of `calls`, which are in the order of their begin. Nothing: there are less than
/// two.
std::optional<ProfiledTimes> profiledTimes(const std::vector<instrument::TimelineCall>& calls, double iterationSeconds);

}  // namespace falcon::control
