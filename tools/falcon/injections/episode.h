// One injection into the running job, from its start until its relief was seen.
#pragma once

#include "injections/draw.h"
#include "injections/scoring.h"
#include "injections/slow_job.h"

namespace falcon::injections {

/// Seconds that an episode waits at most.
inline constexpr double forEffect = 25;   ///< `falcon inject` first watches its victim for up to 5 s
inline constexpr double forVerdict = 45;  ///< from then on
inline constexpr double forRelief = 30;
inline constexpr double afterVerdict = 1;  ///< that long in any case

/// Throws std::runtime_error where the victim could not be slowed, and when the job ended.
Episode injectOnce(SlowJob& job, const Drawn& drawn);

}  // namespace falcon::injections
