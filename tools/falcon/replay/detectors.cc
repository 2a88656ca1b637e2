#include "replay/detectors.h"

#include <stdexcept>
#include <string>

#include "replay/baselines.h"

namespace falcon::replay {
namespace {

class FalconDetector : public Detector {
 public:
  explicit FalconDetector(double threshold) : detector_({.threshold = threshold}) {}
  std::optional<instrument::Change> add(double milliseconds) override { return detector_.add(milliseconds); }

 private:
  instrument::ChangePointDetector detector_;
};

}  // namespace

std::unique_ptr<Detector> makeDetector(std::string_view name, double threshold) {
  if (name == "falcon") return std::make_unique<FalconDetector>(threshold);
  if (name == "bocdv") return std::make_unique<BocdDetector>(BocdDetector::Verification::meanChange, threshold);
  if (name == "bocd") return std::make_unique<BocdDetector>(BocdDetector::Verification::none, threshold);
  if (name == "window") return std::make_unique<WindowDetector>(threshold);
  throw std::invalid_argument("there is no detector " + std::string(name));
}

std::vector<Event> replay(Detector& detector, const std::vector<Recorded>& times) {
  std::vector<Event> events;
  for (const Recorded& time : times)
    if (const auto change = detector.add(time.milliseconds))
      events.push_back({change->kind, time.iteration, change->before, change->after, change->confidence});
  return events;
}

}  // namespace falcon::replay
