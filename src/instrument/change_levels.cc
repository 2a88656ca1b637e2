// The detector's samples, noise and levels.
#include <algorithm>
#include <cmath>

#include "instrument/change_point.h"
#include "instrument/robust_centre.h"
#include "instrument/young_job.h"

namespace falcon::instrument {
namespace {

/// Of a level from which drift is told, in its own standard errors: healthy iterations of two modes make it know less
/// than their number tells.
constexpr double levelErrors = 3;
/// A level is clearly another one from so many of its standard errors on.
constexpr double clearOfError = 3;
/// A job's level lies so long below the healthy one, and that comes down.
constexpr std::int64_t lastingLevel = 32;

}  // namespace

/// Of samples around the level. A slow level is trusted to be as calm as the healthy one, not calmer.
double ChangePointDetector::deviation() const {
  if (state_ == State::learning)
    return samples_.values().size() < 4 ? 0.1 : youngDeviation(samples_.newest(learningSamples));
  double found = healthyNoise_.deviation();
  if (state_ == State::slow && slowNoise_.count() >= 8) found = std::max(found, slowNoise_.deviation());
  return std::max(found, leastNoise);
}

double ChangePointDetector::memory() const {
  return state_ == State::slow ? std::max(healthyNoise_.memory(), slowNoise_.memory()) : healthyNoise_.memory();
}

/// Of the level in force.
double ChangePointDetector::levelError() const {
  return deviation() * memory() / std::sqrt(static_cast<double>(level_.known(samples_.added())));
}

/// Of the level in force, as its samples before `end` show it.
double ChangePointDetector::scatterOfLevel(std::int64_t end) const {
  const auto first = std::max(level_.start, samples_.oldest()) - samples_.oldest(), last = end - samples_.oldest();
  if (first >= last) return 0;  // none of them is kept
  const auto begin = samples_.values().begin();
  return plainDeviation({begin + first, begin + last});
}

bool ChangePointDetector::isHealthy(double value) const {
  const double sigma = std::max(healthyNoise_.deviation(), leastNoise);
  return value < healthy_.ceiling + std::max(limits_.threshold / 2, 2 * sigma);
}

bool ChangePointDetector::isHealthyBelow(double milliseconds, int samples) const {
  if (state_ != State::healthy) return false;
  const double sigma = deviation() * memory();
  const double error = sigma * std::sqrt(1.0 / samples + 1 / static_cast<double>(healthy_.samples));
  return std::log(milliseconds) - healthy_.value > std::max(limits_.threshold / 2, clearOfError * error);
}

void ChangePointDetector::keep(double milliseconds) {
  const double raw = std::log(milliseconds), value = samples_.without(raw);
  if (state_ != State::learning) spikes_.add(value - level_.value, deviation(), samples_.added());
  if (state_ == State::slow) visits_.add(isHealthy(value));
  posterior_.add(value, deviation(), spikes_.outlierRate());
  samples_.add(raw);
  followPattern();
}

void ChangePointDetector::followPattern() {
  const std::int64_t count = samples_.follow(deviation());
  if (count == 0) return;
  restartPosterior();
  spikes_.forgive(count);
  visits_.recount();
  if (state_ == State::slow)
    for (const double value : samples_.newest(count)) visits_.again(isHealthy(value));
}

void ChangePointDetector::refindPattern() {
  const auto other = samples_.refind();
  if (!other) return;
  noise().adjust([&](std::size_t age, double residual) {
    const std::int64_t sample = settled_ - 1 - static_cast<std::int64_t>(age);
    return sample < other->since ? residual : residual + other->before.at(sample) - other->now.at(sample);
  });
  restartPosterior();
}

/// The newest samples are seen by another pattern.
void ChangePointDetector::restartPosterior() {
  posterior_ = RunLengthPosterior(samples_.added() - 8);
  for (const double value : samples_.newest(8)) posterior_.add(value, deviation(), 0.01);
}

/// Samples before `end` are part of the level in force: it follows them, and their residuals tell the noise.
void ChangePointDetector::settle(std::int64_t end) {
  const bool inBursts = spikes_.inBursts();
  for (settled_ = std::max(settled_, samples_.oldest()); settled_ < end; ++settled_) {
    const double residual = samples_[settled_] - level_.value;
    if (residual < limits_.large() || (settled_ >= warmUpSamples && !inBursts)) noise().add(residual);
    const std::int64_t count = settled_ - level_.start;
    if (count < fewSamples) continue;
    const double limit = 2.5 * deviation();
    level_.value += std::clamp(residual, -limit, limit) / static_cast<double>(std::min(count, followedSamples));
  }
}

void ChangePointDetector::addToDrift(double value) {
  const double sigma = deviation() * memory(), most = 0.85 * limits_.threshold;
  const bool healthy = state_ == State::healthy;
  const auto samples = static_cast<double>(healthy ? healthy_.samples : level_.known(samples_.added()));
  const double error = levelErrors * sigma / std::sqrt(samples);
  const double above =
      healthy ? std::max(healthy_.value + most, healthy_.ceiling + limits_.threshold / 2) : level_.anchor + most;
  level_.upward.add((value - above - error) / sigma);
  level_.downward.add((level_.anchor - most - error - value) / sigma);
}

void ChangePointDetector::refineLevel() {
  // Where a change would need a longer streak, the level must not follow a shorter one in silence.
  const int streak = std::abs(spikes_.streak());
  if (streak >= std::max(movedSamples, evidence().lastingSamples())) {
    settle(samples_.added() - streak);  // those before are of the level that is left, not noise around the new one
    settled_ = level_.start = samples_.added() - movedSamples;
    level_.value = robustCentre(samples_.newest(movedSamples), deviation());
    spikes_.endStreak();
    level_.anchorOpen = false;
    return;
  }
  if (streak != 0) return;
  const std::int64_t count = samples_.added() - level_.start;
  if (count <= fewSamples) level_.value = robustCentre(samples_.newest(count), deviation());
  if (count > followedSamples || !level_.anchorOpen) return;
  level_.anchor = level_.value;
  if (state_ == State::healthy) healthy_.refine(level_.value, count);
}

/// What was learnt in a warm-up is too high by less than a change, and would hide one of nearly twice that.
void ChangePointDetector::lowerHealthy() {
  if (state_ != State::healthy || spikes_.streak() != 0 || samples_.added() - level_.start < lastingLevel) return;
  if (healthy_.value - level_.value < std::max(limits_.threshold / 4, clearOfError * levelError())) return;
  healthy_.value = healthy_.ceiling = level_.anchor = level_.value;
  healthy_.samples = level_.known(samples_.added());
  level_.clearDrift();
  minor_.restart();
}

void ChangePointDetector::enterLevel(const Candidate& candidate, State state) {
  if (!candidate.crept) settle(candidate.start);
  minor_.restart();
  if (state != state_) healthy_.open = false;
  if (state == State::slow) slowNoise_.clear();
  visits_.clear();
  state_ = state;
  // The samples of the way there belong to neither level.
  std::int64_t start = std::max(candidate.start, samples_.oldest());
  const double near = std::max(limits_.threshold / 2, 3 * deviation());
  while (start < samples_.added() - 2 && std::abs(samples_[start] - candidate.level) > near) ++start;
  settled_ = std::max(settled_, start);
  level_.enter(candidate.level, start);
  spikes_.endStreak();
}

}  // namespace falcon::instrument
