// Falcon's detector and what it is measured against, behind one interface.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "instrument/change_point.h"
#include "replay/score.h"
#include "replay/table_file.h"

namespace falcon::replay {

/// Sees iteration times one at a time, and says when they have changed.
class Detector {
 public:
  virtual ~Detector() = default;
  virtual std::optional<instrument::Change> add(double milliseconds) = 0;
};

/// - falcon: the detector of the running job
/// - bocdv: BOCD, then verified by a mean change of the threshold, 10 % in the papers
/// - bocd: every change-point that BOCD finds
/// - window: the mean of the newest 10 iterations against the mean of the 10 before
inline constexpr std::array<std::string_view, 4> detectorNames{"falcon", "bocdv", "bocd", "window"};

/// Smallest relative change that counts, for a detector that is told none.
inline constexpr double usualThreshold = 0.1;

/// Of a name out of detectorNames.
/// @param threshold  smallest relative change that counts; bocd counts all
std::unique_ptr<Detector> makeDetector(std::string_view name, double threshold = usualThreshold);

/// What the detector says of the times; events carry the iteration of the sample after which they were raised.
std::vector<Event> replay(Detector& detector, const std::vector<Recorded>& times);

}  // namespace falcon::replay
