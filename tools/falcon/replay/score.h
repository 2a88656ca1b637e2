// How well a detector's events fit the labelled episodes. Pure.
#pragma once

#include <optional>
#include <vector>

#include "instrument/change_point.h"
#include "replay/table_file.h"

namespace falcon::replay {

/// A change that a detector reported.
struct Event {
  instrument::ChangeKind kind;
  std::int64_t iteration;  ///< of the sample after which it was reported
  double beforeMilliseconds, afterMilliseconds, confidence;
};

struct Score {
  int truePositive = 0, falsePositive = 0, falseNegative = 0;
  std::optional<double> onsetDelayMedian, reliefDelayMedian;  ///< iterations; none where nothing was found
};

/// An onset may come so many iterations after an episode's start, and after its end before it is a false one.
inline constexpr std::int64_t allowedDelay = 5;

/// An episode [start, end) is found by an onset in [start, start + 5]; the first one's distance is its delay. An onset
/// in no episode's [start, end + 5] is a false positive; further onsets inside of one count nothing. The relief's delay
/// is the distance of the first relief at or after `end`.
Score scoreOf(const std::vector<Event>& events, const std::vector<Episode>& episodes);

}  // namespace falcon::replay
