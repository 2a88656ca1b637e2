#include "instrument/change_point.h"

#include <algorithm>
#include <cmath>

#include "instrument/robust_centre.h"

namespace falcon::instrument {
namespace {

constexpr std::size_t keptSamples = 128;
/// Samples join level and noise only when it is known that they were no change: the older the level, the later.
/// The delay is longer than most of the steps of a creeping slowdown that have to be seen before they are learnt.
constexpr std::int64_t shortDelay = 4, longDelay = 32;
/// Taken for a burst of spikes once it is over. Longer ones would make a real change known later than five samples.
constexpr int longestEvaluation = 4;
/// Of all samples: more of them are a mode of the healthy ones.
constexpr double mostBursts = 0.2;
/// A burst of spikes is remembered for so many samples.
constexpr std::int64_t burstsCount = 2000;
constexpr double wantedProbability = 0.9;
/// A level is clearly another one from so many of its standard errors on.
constexpr double clearOfError = 3;
/// Slow levels that differ by less, in deviations of the one before, are the same: slow iterations may be wild.
constexpr double clearOfScatter = 2;
/// Of a level from which drift is told, in its own standard errors: healthy iterations of two modes make it know less
/// than their number tells.
constexpr double levelErrors = 3;
/// A measured level scatters: of what is just at the threshold, half would be missed.
constexpr double verified = 0.95;

}  // namespace

const char* nameOf(ChangeKind kind) {
  constexpr const char* names[] = {"onset", "worsening", "easing", "relief", "minor", "minor-over"};
  return names[static_cast<int>(kind)];
}

ChangePointDetector::ChangePointDetector(ChangePointOptions options)
    : threshold_(std::log1p(options.threshold)),
      minor_(std::log1p(options.threshold / 2)),
      healthyNoise_(128),
      slowNoise_(64) {}

double ChangePointDetector::healthyMilliseconds() const {
  return state_ == State::learning ? 0 : std::exp(healthy_);
}
double ChangePointDetector::currentMilliseconds() const {
  return state_ == State::learning ? 0 : std::exp(level_);
}

void ChangePointDetector::rebase() {
  state_ = State::learning;
  posterior_ = RunLengthPosterior();
  raw_.clear();
  history_.clear();
  pattern_ = {};
  healthyNoise_.clear();
  slowNoise_.clear();
  upward_.clear();
  downward_.clear();
  minor_.clear();
  added_ = settled_ = levelStart_ = burstAt_ = patternSince_ = 0;
  streak_ = longestBurst_ = 0;
  burstHeight_ = 0;
}

std::vector<double> ChangePointDetector::newest(std::int64_t count) const {
  const auto available = std::min<std::int64_t>(count, static_cast<std::int64_t>(history_.size()));
  return {history_.end() - available, history_.end()};
}

/// Of samples around the level. A slow level is trusted to be as calm as the healthy one, not calmer.
double ChangePointDetector::deviation() const {
  if (state_ == State::learning) {
    if (history_.size() < 4) return 0.1;
    auto samples = newest(learningSamples);  // warm-up may be among them: the two farthest off do not count
    const double middle = robustCentre(samples, leastNoise);
    std::sort(samples.begin(), samples.end(),
              [=](double a, double b) { return std::abs(a - middle) < std::abs(b - middle); });
    samples.resize(samples.size() - 2);
    return std::max(leastNoise, 1.7 * plainDeviation(samples));
  }
  double found = healthyNoise_.deviation();
  if (state_ == State::slow && slowNoise_.count() >= 8) found = std::max(found, slowNoise_.deviation());
  return std::max(found, leastNoise);
}

double ChangePointDetector::memory() const {
  return state_ == State::slow ? std::max(healthyNoise_.memory(), slowNoise_.memory()) : healthyNoise_.memory();
}

double ChangePointDetector::spikeRate() const {
  return (0.02 + spikes_) / (20 + watched_);
}

/// As many samples as make it unlikely (less than one in a million) that they are all spikes, at the rate seen so far,
/// and two more than the longest burst of spikes lately.
int ChangePointDetector::lastingSamples() const {
  const int byRate = static_cast<int>(std::ceil(std::log(6e-7) / std::log(spikeRate())));
  const int byBurst = added_ - burstAt_ < burstsCount ? longestBurst_ + 2 : 0;
  // A young job may have shown one of two modes only.
  const bool young = watched_ < 48 && std::abs(history_.back() - level_) < large();
  const int byAge = !young ? shortestChange : otherMode_ == 0 ? 5 : otherMode_ == 1 ? 7 : 12;
  return std::max(std::clamp(std::max(byRate, byBurst), shortestChange, 8), byAge);
}

void ChangePointDetector::countBurst(int length, double height) {
  const bool lately = added_ - burstAt_ < burstsCount;
  burstHeight_ = lately ? std::max(burstHeight_, height) : height;
  if (length < longestBurst_ && lately) return;
  longestBurst_ = length;
  burstAt_ = added_;
}

void ChangePointDetector::countSpikes(double value) {
  const double distance = value - level_;
  const int side = std::abs(distance) < std::max(0.75 * threshold_, 3.5 * deviation()) ? 0 : distance > 0 ? 1 : -1;
  watched_ = 0.999 * watched_ + 1;
  spikes_ *= 0.999;
  if (side == 0 || side * streak_ < 0) {
    const int burst = std::abs(streak_);  // the streak has ended without a change: it was spikes
    const bool warmUp = added_ <= warmUpSamples && distanceOfStreak_ > large();
    if (!warmUp) spikes_ += burst;
    if (!warmUp && burst > 1 && burst < movedSamples) countBurst(burst, distanceOfStreak_);
    if (distanceOfStreak_ < large()) otherMode_ += burst;
    streak_ = 0;
  }
  streak_ += side;
  distanceOfStreak_ = std::abs(distance);
}

std::optional<Change> ChangePointDetector::add(double milliseconds) {
  if (!(milliseconds > 0) || !std::isfinite(milliseconds)) return std::nullopt;
  const double raw = std::log(milliseconds), value = raw - pattern_.at(added_);
  if (state_ != State::learning) countSpikes(value);
  countVisits(value);
  posterior_.add(value, deviation(), std::clamp((0.1 + spikes_) / (20 + watched_), 1e-3, 0.2));
  raw_.push_back(raw);
  history_.push_back(value);
  if (raw_.size() > keptSamples) raw_.pop_front();
  if (history_.size() > keptSamples) history_.pop_front();
  ++added_;
  followPattern();
  if (learntWarmUp()) learnAnew();
  if (const std::int64_t count = calmSamples(); count > 0) learnCalm(count);
  if (state_ == State::learning) {
    learn();
    return std::nullopt;
  }
  const std::int64_t delay = std::clamp((added_ - levelStart_) / 2, shortDelay, longDelay);
  settle(added_ - std::max<std::int64_t>(delay, std::abs(streak_)));
  addToDrift(value);
  if (const auto change = nextChange()) return change;
  return nextMinor(value);
}

std::optional<Change> ChangePointDetector::nextChange() {
  auto candidate = healthyStreak();
  if (!candidate) candidate = lastingStreak();
  if (!candidate) candidate = clearestWindow();
  if (candidate && candidate->confidence < wantedProbability) candidate.reset();
  if (candidate)
    if (const auto change = accept(*candidate)) return change;
  // A step of a staircase is too small by itself.
  if (const auto crept = drift())
    if (const auto change = accept(*crept)) return change;
  refineLevel();
  lowerHealthy();
  if (const auto change = silentReturn()) return change;
  refindPattern();
  return std::nullopt;
}

/// While slow there is nothing minor: the onset has been told.
std::optional<Change> ChangePointDetector::nextMinor(double value) {
  if (state_ == State::slow) {
    minor_.clear();
    return std::nullopt;
  }
  const auto turn = minor_.add(value, healthy_, healthySamples_, deviation() * memory());
  if (turn == MinorSlowness::Turn::none) return std::nullopt;
  const bool begins = turn == MinorSlowness::Turn::begins;
  return Change{begins ? ChangeKind::minor : ChangeKind::minorOver, std::exp(healthy_), std::exp(minor_.level()),
                minor_.confidence(), added_ - static_cast<std::int64_t>(begins ? MinorSlowness::lasting : 0)};
}

/// Samples before `end` are part of the level in force: it follows them, and their residuals tell the noise.
void ChangePointDetector::settle(std::int64_t end) {
  const std::int64_t oldest = added_ - static_cast<std::int64_t>(history_.size());
  // Evaluations of some iterations are no noise, though they be more than the tenth of all that is cut.
  const bool inBursts = longestBurst_ > 1 && spikeRate() < mostBursts;
  for (settled_ = std::max(settled_, oldest); settled_ < end; ++settled_) {
    const double residual = history_[static_cast<std::size_t>(settled_ - oldest)] - level_;
    if (residual < large() || (settled_ >= warmUpSamples && !inBursts)) noise().add(residual);
    if (settled_ - levelStart_ < fewSamples) continue;
    const double limit = 2.5 * deviation();
    level_ +=
        std::clamp(residual, -limit, limit) / static_cast<double>(std::min(settled_ - levelStart_, followedSamples));
  }
}

bool ChangePointDetector::isVisit(double value) const {
  const double sigma = std::max(healthyNoise_.deviation(), leastNoise);
  return value < healthyCeiling_ + std::max(threshold_ / 2, 2 * sigma);
}

void ChangePointDetector::countVisits(double value) {
  if (state_ != State::slow) return;
  slowSamples_ = 0.99 * slowSamples_ + 1;
  visits_ *= 0.99;
  if (isVisit(value)) {
    ++visit_;
  } else {
    visits_ += visit_;
    visit_ = 0;
  }
}

void ChangePointDetector::addToDrift(double value) {
  const double sigma = deviation() * memory();
  const auto samples =
      static_cast<double>(state_ == State::healthy ? healthySamples_ : std::min(added_ - levelStart_, followedSamples));
  const double error = levelErrors * sigma / std::sqrt(samples);
  const double above = state_ == State::healthy
                           ? std::max(healthy_ + 0.85 * threshold_, healthyCeiling_ + threshold_ / 2)
                           : anchor_ + 0.85 * threshold_;
  const double below = anchor_ - 0.85 * threshold_;
  upward_.add((value - above - error) / sigma);
  downward_.add((below - error - value) / sigma);
}

/// The newest sample lies far from the level that those before have told: a burst of spikes, rising or dying away,
/// looks like that. Slow iterations that alternate do not, nor does a spike among them.
bool ChangePointDetector::isBurst(double level) const {
  return std::abs(history_.back() - level) > std::max({threshold_, 4 * deviation(), (level - level_) / 4});
}

/// So many in a row, each farther off than any spike that is remembered, are no burst, however little they agree.
bool ChangePointDetector::isBeyondSpikes() const {
  const auto size = std::ssize(history_);
  if (state_ != State::healthy || added_ <= warmUpSamples + wildSamples || size <= wildSamples) return false;
  const auto newest = history_.end() - wildSamples;
  const double burst = added_ - burstAt_ < burstsCount ? burstHeight_ : 0;
  const double highest = std::max(*std::max_element(history_.begin(), newest), level_ + std::max(large(), burst));
  return std::all_of(newest, history_.end(), [=](double sample) { return sample > highest; });
}

/// How many samples lie beyond the middle of the way to the candidate's level, or far enough to be a change themselves.
int ChangePointDetector::belonging(const Candidate& candidate) const {
  const double way = candidate.level - level_, side = way > 0 ? 1 : -1;
  const double least = std::min(std::abs(way) / 2, std::max(0.85 * threshold_, 5 * deviation()));
  const auto samples = newest(added_ - candidate.start);
  return static_cast<int>(
      std::count_if(samples.begin(), samples.end(), [&](double sample) { return side * (sample - level_) > least; }));
}

/// Of the level in force, as its samples before `end` show it.
double ChangePointDetector::scatterOfLevel(std::int64_t end) const {
  const std::int64_t oldest = added_ - static_cast<std::int64_t>(history_.size());
  const auto from = history_.begin() + (std::max(levelStart_, oldest) - oldest), to = history_.begin() + (end - oldest);
  return from < to ? plainDeviation({from, to}) : 0;
}

bool ChangePointDetector::isGrowing() const {
  return growsSteadily(newest(added_ - levelStart_), std::max(threshold_ / 2, 3 * deviation()));
}

/// The newest three samples agree with each other.
bool ChangePointDetector::isSettled() const {
  const auto samples = newest(3);
  const auto [least, most] = std::minmax_element(samples.begin(), samples.end());
  return *most - *least < std::max(threshold_, 4 * deviation());
}

void ChangePointDetector::refineLevel() {
  // Where a change would need a longer streak, the level must not follow a shorter one in silence.
  if (std::abs(streak_) >= std::max(movedSamples, lastingSamples())) {
    settle(added_ - std::abs(streak_));  // those before are of the level that is left, not noise around the new one
    settled_ = levelStart_ = added_ - movedSamples;
    level_ = robustCentre(newest(movedSamples), deviation());
    streak_ = 0;
    anchorOpen_ = false;
    return;
  }
  if (streak_ != 0) return;
  const std::int64_t count = added_ - levelStart_;
  if (count <= fewSamples) level_ = robustCentre(newest(count), deviation());
  if (count > followedSamples || !anchorOpen_) return;
  anchor_ = level_;
  if (state_ != State::healthy) return;
  if (baselineOpen_) {
    healthy_ = level_;
    healthySamples_ = count;
  }
  if (baselineOpen_ || count <= fewSamples) healthyCeiling_ = level_;
}

/// Of the level in force.
double ChangePointDetector::levelError() const {
  return deviation() * memory() / std::sqrt(static_cast<double>(std::min(added_ - levelStart_, followedSamples)));
}

/// What was learnt in a warm-up is too high by less than a change, and would hide one of nearly twice that.
void ChangePointDetector::lowerHealthy() {
  if (state_ != State::healthy || streak_ != 0 || added_ - levelStart_ < longDelay) return;
  if (healthy_ - level_ < std::max(threshold_ / 4, clearOfError * levelError())) return;
  healthy_ = healthyCeiling_ = anchor_ = level_;
  healthySamples_ = std::min(added_ - levelStart_, followedSamples);
  upward_.clear();
  minor_.restart();
}

bool ChangePointDetector::isHealthyBelow(double milliseconds, int samples) const {
  if (state_ != State::healthy) return false;
  const double sigma = deviation() * memory();
  const double error = sigma * std::sqrt(1.0 / samples + 1 / static_cast<double>(healthySamples_));
  return std::log(milliseconds) - healthy_ > std::max(threshold_ / 2, clearOfError * error);
}

bool ChangePointDetector::isBackToHealthy(double level, double error) const {
  const double recovered = 0.1 * (level_ - healthyCeiling_);  // of a large slowdown, nine tenths
  return level < healthyCeiling_ + std::max(verified * threshold_, recovered) + error;
}

/// The slow level has followed its samples back to the healthy one: too few had told it, and no step leads away from
/// it.
std::optional<Change> ChangePointDetector::silentReturn() {
  const std::int64_t count = added_ - levelStart_;
  const double highest = std::min(healthyCeiling_, entered_ - threshold_) + threshold_ / 2;
  if (state_ != State::slow || streak_ != 0 || count < longDelay || level_ > highest) return std::nullopt;
  const double distance = (healthyCeiling_ + threshold_ - level_) / levelError();
  return relieve({levelStart_, level_, 1 - std::erfc(distance / std::sqrt(2)) / 2, true}, entered_);
}

/// @param before  the slow level, as it was known
Change ChangePointDetector::relieve(const Candidate& candidate, double before) {
  // A few slow ones are an evaluation as well as a fail-slow; the next ones are the same again.
  if (const auto lasted = static_cast<int>(candidate.start - slowSince_); lasted <= longestEvaluation) {
    countBurst(lasted, before - candidate.level);
    spikes_ += lasted;
  }
  enterLevel(candidate, State::healthy);
  healthy_ = std::min(healthy_, level_ + threshold_ / 2);
  healthyCeiling_ = level_;
  return {ChangeKind::relief, std::exp(before), std::exp(candidate.level), candidate.confidence, candidate.start};
}

void ChangePointDetector::enterLevel(const Candidate& candidate, State state) {
  if (!candidate.crept) settle(candidate.start);
  minor_.restart();
  if (state != state_) baselineOpen_ = false;
  if (state == State::slow) slowNoise_.clear();
  visits_ = slowSamples_ = 0;
  visit_ = 0;
  state_ = state;
  // The samples of the way there belong to neither level.
  const std::int64_t oldest = added_ - static_cast<std::int64_t>(history_.size());
  levelStart_ = std::max(candidate.start, oldest);
  const double near = std::max(threshold_ / 2, 3 * deviation());
  while (levelStart_ < added_ - 2 &&
         std::abs(history_[static_cast<std::size_t>(levelStart_ - oldest)] - candidate.level) > near)
    ++levelStart_;
  settled_ = std::max(settled_, levelStart_);
  level_ = anchor_ = entered_ = candidate.level;
  anchorOpen_ = true;
  streak_ = 0;
  upward_.clear();
  downward_.clear();
}

std::optional<Change> ChangePointDetector::accept(const Candidate& candidate) {
  const double entered = state_ == State::healthy ? std::min(anchor_, healthy_) : anchor_;
  // A step of a staircase is small by itself, and the level has gone up with those before it.
  const double step = candidate.level - level_;
  const bool ofAStaircase = state_ == State::healthy && step > threshold_ / 2 && step < verified * threshold_ &&
                            level_ - entered > threshold_ / 2;
  const double reference = candidate.crept || ofAStaircase ? entered : level_;
  const double change = candidate.level - reference;
  Change found{ChangeKind::onset, std::exp(reference), std::exp(candidate.level), candidate.confidence,
               candidate.start};
  if (!candidate.crept && belonging(candidate) < shortestChange) return std::nullopt;
  const auto count = static_cast<double>(added_ - candidate.start);
  const double error = deviation() / std::sqrt(count);
  if (state_ == State::healthy) {
    if (std::abs(change) < verified * threshold_) return std::nullopt;
    if (change > 0) {
      if (count < movedSamples && isBurst(candidate.level) && !isBeyondSpikes()) return std::nullopt;
      healthyCeiling_ = std::max(healthy_, level_);
      slowSince_ = candidate.start;
      enterLevel(candidate, State::slow);
      return found;
    }
    if (count < movedSamples) return std::nullopt;  // nothing is lost by waiting
    enterLevel(candidate, State::healthy);
    healthy_ = healthyCeiling_ = level_;
    healthySamples_ = std::min(added_ - candidate.start, longestWindow);
    baselineOpen_ = true;
    return std::nullopt;
  }
  const bool back = change < 0 && isBackToHealthy(candidate.level, error);
  // A job that is nearly healthy again need not have been very slow.
  const bool nearly = back && candidate.level < healthyCeiling_ + threshold_ / 2;
  if (std::abs(change) < (nearly ? threshold_ / 3 : verified * threshold_)) return std::nullopt;
  // On the way down the level decides between easing and relief: wait until it has settled.
  if (change < 0 && !isSettled()) return std::nullopt;
  if (!back && count < learningSamples) return std::nullopt;
  if (!back && std::abs(change) < clearOfScatter * scatterOfLevel(candidate.start)) return std::nullopt;
  // What has been told and goes on creeping is told again where that has become much; a steady growth is not.
  const bool silent = change > 0 && isGrowing();
  if (change > 0 && !silent && candidate.crept && change < large()) return std::nullopt;
  if (back) return relieve(candidate, reference);
  enterLevel(candidate, State::slow);
  if (silent) return std::nullopt;
  found.kind = change > 0 ? ChangeKind::worsening : ChangeKind::easing;
  return found;
}

}  // namespace falcon::instrument
