// What a change of the iteration time is, and how many samples tell what; for all that the detector consists of.
#pragma once

#include <algorithm>
#include <cstdint>

namespace falcon::instrument {

/// As the job was told it. All levels and distances are logarithms.
struct ChangeLimits {
  double threshold = 0;  ///< smallest change that counts
  /// A change that is no alternation of healthy iterations: half as long again, and clearly more than what counts.
  double large() const { return std::max(0.45, 1.5 * threshold); }
};

/// A computer's iteration time is never steadier than this, however few samples say so.
inline constexpr double leastNoise = 0.01;
inline constexpr int shortestChange = 3;  ///< two spikes, however high, are none
inline constexpr int wildSamples = 4;     ///< of a level several times as high
/// So many samples in a row off the level are no spikes: if they are no change worth a word, the level has moved.
inline constexpr int movedSamples = 8;
inline constexpr std::int64_t longestWindow = 48;
/// A level is estimated anew from all its samples as long as these are few, then follows with this share a sample.
inline constexpr std::int64_t fewSamples = 16, followedSamples = 64;
/// Slow ones among the first iterations are warm-up, also where quick ones lie between: neither noise nor spikes.
inline constexpr std::int64_t warmUpSamples = 16;

}  // namespace falcon::instrument
