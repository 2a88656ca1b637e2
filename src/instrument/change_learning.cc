// The detector's first healthy level, and what it learns anew.
#include <algorithm>
#include <cmath>

#include "instrument/change_point.h"
#include "instrument/robust_centre.h"
#include "instrument/young_job.h"

namespace falcon::instrument {

void ChangePointDetector::learn() {
  if (!isWarmedUp(samples_, limits_)) return;
  const auto samples = samples_.newest(learningSamples);
  state_ = State::healthy;
  learnLevel(samples, leastNoise);
  int others = 0;
  for (const double sample : samples) {
    const double distance = sample - level_.value;
    if (distance > limits_.large()) continue;
    healthyNoise_.add(distance);
    others += std::abs(distance) > 0.75 * limits_.threshold;
  }
  spikes_.beginModes(others);
}

void ChangePointDetector::learnAnew() {
  state_ = State::learning;
  healthyNoise_.clear();
  level_.clearDrift();
  spikes_.restart();
  learn();
}

/// That of the newest samples, all of which have told it.
void ChangePointDetector::learnLevel(const std::vector<double>& samples, double deviation) {
  const double level = robustCentre(samples, deviation);
  healthy_.learn(level, std::ssize(samples));
  level_.value = level_.anchor = level;
  level_.start = samples_.added() - std::ssize(samples);
  level_.anchorOpen = true;
  minor_.restart();
  settled_ = samples_.added();
}

/// A level and a noise that still remember a warm-up would hide a change for more than a hundred iterations.
std::int64_t ChangePointDetector::calmSamples() const {
  if (state_ != State::healthy) return 0;
  const double known = healthyNoise_.deviation();
  // What creeps is not calm: the level that it crept from stays.
  const double error = known / std::sqrt(static_cast<double>(healthy_.samples));
  return instrument::calmSamples(samples_, known,
                                 std::min(healthy_.value, level_.anchor) + limits_.threshold / 4 + error);
}

void ChangePointDetector::learnCalm(std::int64_t count) {
  const auto samples = samples_.newest(count);
  learnLevel(samples, healthyNoise_.deviation());
  healthyNoise_.clear();
  for (const double sample : samples) healthyNoise_.add(sample - level_.value);
  spikes_.calm();
  level_.clearDrift();
}

}  // namespace falcon::instrument
