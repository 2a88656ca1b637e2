// The healthy level and its noise, learnt from a young job: its first iterations may be slow and uneven.
#include <algorithm>
#include <cmath>
#include <span>

#include "instrument/change_point.h"
#include "instrument/robust_centre.h"

namespace falcon::instrument {
namespace {

/// A job settles within so many iterations. Later the level follows by itself, and calm ones may be chance.
constexpr std::int64_t youngSamples = 256;
/// So many that scatter by so much less than what is known as noise are no chance. (Fewer, twelve for one, are: in a
/// job of two modes so many in a row are often of the same.)
struct Calm {
  std::int64_t samples;
  double share;
};
constexpr Calm calms[] = {{24, 0.3}, {48, 0.6}};

double deviationAround(double centre, std::span<const double> samples) {
  NoiseEstimate found(samples.size());
  for (const double sample : samples) found.add(sample - centre);
  return found.deviation();
}

}  // namespace

/// The level of a young job is that of its warm-up: then neither its scatter nor how far the others lie below it is
/// noise.
bool ChangePointDetector::learntWarmUp() const {
  if (state_ != State::healthy || added_ >= 4 * warmUpSamples) return false;
  const auto samples = newest(movedSamples);
  return std::all_of(samples.begin(), samples.end(), [&](double sample) { return sample < level_ - large(); });
}

void ChangePointDetector::learnAnew() {
  state_ = State::learning;
  healthyNoise_.clear();
  upward_.clear();
  downward_.clear();
  spikes_ = watched_ = 0;
  streak_ = longestBurst_ = 0;
  learn();
}

void ChangePointDetector::learn() {
  if (added_ < learningSamples) return;
  const auto samples = newest(learningSamples);
  // Warm-up: longer than what follows.
  const double most = *std::max_element(samples.begin() + learningSamples / 2, samples.end());
  if (*std::max_element(samples.begin(), samples.begin() + learningSamples / 2) > most + threshold_) return;
  state_ = State::healthy;
  learnLevel(samples, leastNoise);
  otherMode_ = 0;
  for (const double sample : samples) {
    const double distance = sample - level_;
    if (distance > large()) continue;
    healthyNoise_.add(distance);
    otherMode_ += std::abs(distance) > 0.75 * threshold_;
  }
}

/// That of the newest samples, all of which have told it.
void ChangePointDetector::learnLevel(const std::vector<double>& samples, double deviation) {
  healthy_ = healthyCeiling_ = level_ = anchor_ = robustCentre(samples, deviation);
  healthySamples_ = std::ssize(samples);
  levelStart_ = added_ - healthySamples_;
  minor_.restart();
  settled_ = added_;
  baselineOpen_ = anchorOpen_ = true;
}

/// The newest samples scatter far less than those before: a level and a noise that still remember those would hide a
/// change from this job for more than a hundred iterations.
/// @return how many they are; 0: they do not
std::int64_t ChangePointDetector::calmSamples() const {
  const double known = healthyNoise_.deviation();
  if (state_ != State::healthy || added_ > youngSamples || added_ % 4 != 0 || known < 2 * leastNoise) return 0;
  // What creeps is not calm: the level that it crept from stays.
  const double error = known / std::sqrt(static_cast<double>(healthySamples_));
  const double highest = std::min(healthy_, anchor_) + threshold_ / 4 + error;
  for (const auto& [count, share] : calms) {
    if (std::ssize(history_) < count + learningSamples) break;
    const auto samples = newest(count);
    const double centre = robustCentre(samples, known);
    if (centre > highest) continue;
    const auto half = samples.begin() + count / 2;
    const double older = deviationAround(centre, {samples.begin(), half});
    const double newer = deviationAround(centre, {half, samples.end()});
    // While the older ones scatter more, some of them still belong to what is over: soon it will be known better.
    if (std::max(older, newer) < share * known && older < 1.5 * newer) return count;
  }
  return 0;
}

void ChangePointDetector::learnCalm(std::int64_t count) {
  const auto samples = newest(count);
  learnLevel(samples, healthyNoise_.deviation());
  healthyNoise_.clear();
  for (const double sample : samples) healthyNoise_.add(sample - level_);
  spikes_ = 0;
  streak_ = longestBurst_ = 0;
  upward_.clear();
  downward_.clear();
}

}  // namespace falcon::instrument
