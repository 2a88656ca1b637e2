// The levels of the iteration time: the healthy one, and the one in force.
#pragma once

#include <algorithm>
#include <cstdint>

#include "instrument/change_limits.h"
#include "instrument/drift_sum.h"

namespace falcon::instrument {

/// The healthy level: learnt from the first steady samples, refined as long as it is open. Used by one thread.
struct HealthyLevel {
  double value = 0;
  std::int64_t samples = 0;  ///< that have told it
  double ceiling = 0;        ///< what counts as healthy lies below this plus the threshold
  bool open = true;          ///< it is still refined

  void learn(double level, std::int64_t told) {
    value = ceiling = level;
    samples = told;
    open = true;
  }
  /// The level in force, which is healthy, as so many samples tell it now.
  void refine(double level, std::int64_t told) {
    if (open) {
      value = level;
      samples = told;
    }
    if (open || told <= fewSamples) ceiling = level;
  }
  /// The job was slow, and is as healthy as at this level.
  void relieve(double level, double threshold) {
    value = std::min(value, level + threshold / 2);
    ceiling = level;
  }
};

/// The level in force: follows its samples slowly, and knows where it began. Used by one thread.
struct PresentLevel {
  double value = 0;
  double anchor = 0;          ///< where it was when it was entered
  double entered = 0;         ///< the same, as it was known then
  std::int64_t start = 0;     ///< first sample at this level
  bool anchorOpen = true;     ///< the anchor is still refined
  DriftSum upward, downward;  ///< against the anchor, and against the healthy level

  void enter(double level, std::int64_t from) {
    value = anchor = entered = level;
    start = from;
    anchorOpen = true;
    clearDrift();
  }
  void clearDrift() {
    upward.clear();
    downward.clear();
  }
  /// How many samples tell it.
  std::int64_t known(std::int64_t added) const { return std::min(added - start, followedSamples); }
};

}  // namespace falcon::instrument
