#include "instrument/change_point.h"

#include <algorithm>
#include <cmath>

#include "instrument/growth.h"
#include "instrument/robust_centre.h"
#include "instrument/young_job.h"

namespace falcon::instrument {
namespace {

/// Samples join level and noise only when it is known that they were no change: the older the level, the later.
/// The delay is longer than most of the steps of a creeping slowdown that have to be seen before they are learnt.
constexpr std::int64_t shortDelay = 4, longDelay = 32;
/// Taken for a burst of spikes once it is over. Longer ones would make a real change known later than five samples.
constexpr int longestEvaluation = 4;
constexpr double wantedProbability = 0.9;
/// Slow levels that differ by less, in deviations of the one before, are the same: slow iterations may be wild.
constexpr double clearOfScatter = 2;
/// A measured level scatters: of what is just at the threshold, half would be missed.
constexpr double verified = 0.95;

}  // namespace

const char* nameOf(ChangeKind kind) {
  constexpr const char* names[] = {"onset", "worsening", "easing", "relief", "minor", "minor-over"};
  return names[static_cast<int>(kind)];
}

ChangePointDetector::ChangePointDetector(ChangePointOptions options)
    : limits_{std::log1p(options.threshold)},
      samples_(limits_.threshold),
      healthyNoise_(128),
      slowNoise_(64),
      spikes_(limits_),
      minor_(std::log1p(options.threshold / 2)) {}

double ChangePointDetector::healthyMilliseconds() const {
  return state_ == State::learning ? 0 : std::exp(healthy_.value);
}
double ChangePointDetector::currentMilliseconds() const {
  return state_ == State::learning ? 0 : std::exp(level_.value);
}

void ChangePointDetector::rebase() {
  state_ = State::learning;
  posterior_ = RunLengthPosterior();
  samples_.clear();
  healthyNoise_.clear();
  slowNoise_.clear();
  level_.clearDrift();
  level_.start = settled_ = 0;
  minor_.clear();
  spikes_.rebase();
}

Evidence ChangePointDetector::evidence() const {
  return {limits_, samples_, level_, spikes_, posterior_, deviation(), memory(), healthyNoise_.count()};
}

std::optional<Change> ChangePointDetector::add(double milliseconds) {
  if (!(milliseconds > 0) || !std::isfinite(milliseconds)) return std::nullopt;
  keep(milliseconds);
  if (state_ == State::healthy && isLevelOfWarmUp(samples_, level_.value, limits_)) learnAnew();
  if (const std::int64_t count = calmSamples(); count > 0) learnCalm(count);
  if (state_ == State::learning) {
    learn();
    return std::nullopt;
  }
  const std::int64_t delay = std::clamp((samples_.added() - level_.start) / 2, shortDelay, longDelay);
  settle(samples_.added() - std::max<std::int64_t>(delay, std::abs(spikes_.streak())));
  addToDrift(samples_.values().back());
  if (const auto change = nextChange()) return change;
  return nextMinor();
}

std::optional<Change> ChangePointDetector::nextChange() {
  const Evidence now = evidence();
  std::optional<Candidate> candidate;
  if (state_ == State::slow) candidate = healthyStreak(now, visits_, healthy_);
  if (!candidate) candidate = lastingStreak(now, state_ == State::healthy && isBeyondSpikes(now));
  if (!candidate) candidate = clearestWindow(now);
  if (candidate && candidate->confidence >= wantedProbability)
    if (const auto change = accept(*candidate)) return change;
  // A step of a staircase is too small by itself.
  if (const auto crept = drift(evidence()))
    if (const auto change = accept(*crept)) return change;
  refineLevel();
  lowerHealthy();
  if (const auto change = silentReturn()) return change;
  refindPattern();
  return std::nullopt;
}

/// While slow there is nothing minor: the onset has been told.
std::optional<Change> ChangePointDetector::nextMinor() {
  if (state_ == State::slow) {
    minor_.clear();
    return std::nullopt;
  }
  const auto turn = minor_.add(samples_.values().back(), healthy_.value, healthy_.samples, deviation() * memory());
  if (turn == MinorSlowness::Turn::none) return std::nullopt;
  const bool begins = turn == MinorSlowness::Turn::begins;
  return Change{begins ? ChangeKind::minor : ChangeKind::minorOver, std::exp(healthy_.value), std::exp(minor_.level()),
                minor_.confidence(), samples_.added() - static_cast<std::int64_t>(begins ? MinorSlowness::lasting : 0)};
}

/// The newest sample lies far from the level that those before have told: a burst of spikes, rising or dying away,
/// looks like that. Slow iterations that alternate do not, nor does a spike among them.
bool ChangePointDetector::isBurst(double level) const {
  const double most = std::max({limits_.threshold, 4 * deviation(), (level - level_.value) / 4});
  return std::abs(samples_.values().back() - level) > most;
}

bool ChangePointDetector::isGrowing() const {
  return growsSteadily(samples_.newest(samples_.added() - level_.start),
                       std::max(limits_.threshold / 2, 3 * deviation()));
}

/// The newest three samples agree with each other.
bool ChangePointDetector::isSettled() const {
  const auto samples = samples_.newest(3);
  const auto [least, most] = std::minmax_element(samples.begin(), samples.end());
  return *most - *least < std::max(limits_.threshold, 4 * deviation());
}

bool ChangePointDetector::isBackToHealthy(double level, double error) const {
  const double recovered = 0.1 * (level_.value - healthy_.ceiling);  // of a large slowdown, nine tenths
  return level < healthy_.ceiling + std::max(verified * limits_.threshold, recovered) + error;
}

/// The slow level has followed its samples back to the healthy one: too few had told it, and no step leads away from
/// it.
std::optional<Change> ChangePointDetector::silentReturn() {
  const std::int64_t count = samples_.added() - level_.start;
  const double highest = std::min(healthy_.ceiling, level_.entered - limits_.threshold) + limits_.threshold / 2;
  if (state_ != State::slow || spikes_.streak() != 0 || count < longDelay || level_.value > highest)
    return std::nullopt;
  const double distance = (healthy_.ceiling + limits_.threshold - level_.value) / levelError();
  return relieve({level_.start, level_.value, 1 - std::erfc(distance / std::sqrt(2)) / 2, true}, level_.entered);
}

/// @param before  the slow level, as it was known
Change ChangePointDetector::relieve(const Candidate& candidate, double before) {
  // A few slow ones are an evaluation as well as a fail-slow; the next ones are the same again.
  if (const auto lasted = static_cast<int>(candidate.start - slowSince_); lasted <= longestEvaluation)
    spikes_.addBurst(lasted, before - candidate.level, samples_.added());
  enterLevel(candidate, State::healthy);
  healthy_.relieve(level_.value, limits_.threshold);
  return {ChangeKind::relief, std::exp(before), std::exp(candidate.level), candidate.confidence, candidate.start};
}

std::optional<Change> ChangePointDetector::accept(const Candidate& candidate) {
  const bool healthy = state_ == State::healthy;
  const double entered = healthy ? std::min(level_.anchor, healthy_.value) : level_.anchor;
  // A step of a staircase is small by itself, and the level has gone up with those before it.
  const double step = candidate.level - level_.value, half = limits_.threshold / 2;
  const bool ofAStaircase =
      healthy && step > half && step < verified * limits_.threshold && level_.value - entered > half;
  const double reference = candidate.crept || ofAStaircase ? entered : level_.value;
  if (!candidate.crept && belonging(evidence(), candidate) < shortestChange) return std::nullopt;
  const Change found{ChangeKind::onset, std::exp(reference), std::exp(candidate.level), candidate.confidence,
                     candidate.start};
  return healthy ? acceptHealthy(candidate, candidate.level - reference, found)
                 : acceptSlow(candidate, reference, found);
}

std::optional<Change> ChangePointDetector::acceptHealthy(const Candidate& candidate, double change, Change found) {
  const std::int64_t count = samples_.added() - candidate.start;
  if (std::abs(change) < verified * limits_.threshold) return std::nullopt;
  if (change > 0) {
    if (count < movedSamples && isBurst(candidate.level) && !isBeyondSpikes(evidence())) return std::nullopt;
    healthy_.ceiling = std::max(healthy_.value, level_.value);
    slowSince_ = candidate.start;
    enterLevel(candidate, State::slow);
    return found;
  }
  if (count < movedSamples) return std::nullopt;  // nothing is lost by waiting
  enterLevel(candidate, State::healthy);
  healthy_.learn(level_.value, std::min(samples_.added() - candidate.start, longestWindow));
  return std::nullopt;
}

std::optional<Change> ChangePointDetector::acceptSlow(const Candidate& candidate, double reference, Change found) {
  const double change = candidate.level - reference, size = std::abs(change);
  const auto count = static_cast<double>(samples_.added() - candidate.start);
  const bool back = change < 0 && isBackToHealthy(candidate.level, deviation() / std::sqrt(count));
  // A job that is nearly healthy again need not have been very slow.
  const bool nearly = back && candidate.level < healthy_.ceiling + limits_.threshold / 2;
  if (size < (nearly ? limits_.threshold / 3 : verified * limits_.threshold)) return std::nullopt;
  // On the way down the level decides between easing and relief: wait until it has settled.
  if (change < 0 && !isSettled()) return std::nullopt;
  if (back) return relieve(candidate, reference);
  if (count < learningSamples || size < clearOfScatter * scatterOfLevel(candidate.start)) return std::nullopt;
  // What has been told and goes on creeping is told again where that has become much; a steady growth is not.
  const bool silent = change > 0 && isGrowing();
  if (change > 0 && !silent && candidate.crept && change < limits_.large()) return std::nullopt;
  enterLevel(candidate, State::slow);
  if (silent) return std::nullopt;
  found.kind = change > 0 ? ChangeKind::worsening : ChangeKind::easing;
  return found;
}

}  // namespace falcon::instrument
