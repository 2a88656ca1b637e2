// The healthy level and its noise, learnt from a young job: its first iterations may be slow and uneven. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "instrument/alternation.h"
#include "instrument/change_limits.h"

namespace falcon::instrument {

/// So many samples are the first to tell a level.
inline constexpr std::int64_t learningSamples = 6;

/// Of samples of which the first may be of a warm-up: the two farthest off do not count.
double youngDeviation(std::vector<double> samples);

/// Whether the newest six samples are steady enough to tell a level: none of the older half is longer than the others
/// by what counts, as in a warm-up.
bool isWarmedUp(const Alternation& samples, const ChangeLimits& limits);

/// The level of a young job is that of its warm-up: then neither its scatter nor how far the others lie below it is
/// noise.
/// @param level  the healthy one
bool isLevelOfWarmUp(const Alternation& samples, double level, const ChangeLimits& limits);

/// The newest samples of a young job scatter far less than those before: a level and a noise that still remember those
/// would hide a change from this job for more than a hundred iterations.
/// @param deviation  as it is known
/// @param highest    what creeps is not calm: the newest samples' level must lie below this
/// @return           how many they are; 0: they do not
std::int64_t calmSamples(const Alternation& samples, double deviation, double highest);

}  // namespace falcon::instrument
