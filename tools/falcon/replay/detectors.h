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
/// - bocdv: BOCD, then verified by a mean change of 10 %, as in the papers
/// - bocd: every change-point that BOCD finds
/// - window: the mean of the newest 10 iterations against the mean of the 10 before
inline constexpr std::array<std::string_view, 4> detectorNames{"falcon", "bocdv", "bocd", "window"};

/// Of a name out of detectorNames.
std::unique_ptr<Detector> makeDetector(std::string_view name);

/// What the detector says of the times; events carry the iteration of the sample after which they were raised.
std::vector<Event> replay(Detector& detector, const std::vector<Recorded>& times);

}  // namespace falcon::replay
