#include "instrument/change_point.h"

#include <algorithm>
#include <cmath>

#include "base/median.h"

namespace falcon::instrument {
namespace {

constexpr std::size_t keptSamples = 128;
constexpr std::int64_t learningSamples = 6;
/// A level is refined over so many of its samples, then it stands: slow drifts add up to a change.
constexpr std::int64_t refiningSamples = 64;
constexpr double wantedProbability = 0.9;
/// Standard errors between the levels. Some hundred thousand samples are judged in a long job, each at several run
/// lengths; medians and an estimated deviation have heavier tails than the normal distribution.
constexpr double clearOfNoise = 5;
/// A computer's iteration time is never steadier than this, however few samples say so.
constexpr double leastNoise = 0.01;

double deviationOf(const std::vector<double>& values) {
  double mean = 0, squares = 0;
  for (const double value : values) mean += value / static_cast<double>(values.size());
  for (const double value : values) squares += (value - mean) * (value - mean);
  return values.size() < 2 ? 0 : std::sqrt(squares / static_cast<double>(values.size() - 1));
}

double robustDeviationOf(std::vector<double> values) {
  const double centre = median(values, 0);
  for (double& value : values) value = std::abs(value - centre);
  return 1.4826 * median(std::move(values), 0);
}

/// Median of all pairwise means (Hodges and Lehmann, 1963): nearly as sharp as the mean, nearly as robust as the
/// median.
double centreOf(const std::vector<double>& values) {
  std::vector<double> means;
  means.reserve(values.size() * (values.size() + 1) / 2);
  for (std::size_t i = 0; i < values.size(); ++i)
    for (std::size_t k = i; k < values.size(); ++k) means.push_back((values[i] + values[k]) / 2);
  return median(std::move(means), 0);
}

/// How much longer than independent ones values take to average out: sqrt((1 + r) / (1 - r)) with r the correlation of
/// neighbours, unless it may be chance.
double memoryOf(const std::vector<double>& values) {
  if (values.size() < 16) return 1;
  const double centre = median(values, 0), limit = 4 * robustDeviationOf(values);
  double products = 0, squares = 0, before = 0;
  for (const double value : values) {
    const double now = std::clamp(value - centre, -limit, limit);  // a spike is no memory
    products += before * now;
    squares += now * now;
    before = now;
  }
  const double correlation = squares > 0 ? std::min(products / squares, 0.9) : 0;
  if (correlation < 2 / std::sqrt(static_cast<double>(values.size()))) return 1;
  return std::sqrt((1 + correlation) / (1 - correlation));
}

}  // namespace

const char* nameOf(ChangeKind kind) {
  constexpr const char* names[] = {"onset", "worsening", "easing", "relief"};
  return names[static_cast<int>(kind)];
}

ChangePointDetector::ChangePointDetector(ChangePointOptions options) : threshold_(std::log1p(options.threshold)) {}

double ChangePointDetector::healthyMilliseconds() const {
  return state_ == State::learning ? 0 : std::exp(healthy_);
}
double ChangePointDetector::currentMilliseconds() const {
  return state_ == State::learning ? 0 : std::exp(level_);
}

void ChangePointDetector::rebase() {
  state_ = State::learning;
  posterior_ = {};
  history_.clear();
  residuals_.clear();
  added_ = 0;
  streak_ = 0;
}

std::vector<double> ChangePointDetector::newest(std::int64_t count) const {
  const auto available = std::min<std::int64_t>(count, static_cast<std::int64_t>(history_.size()));
  return {history_.end() - available, history_.end()};
}

/// Successive differences do not mind changes of level; the spread around the level sees slow wobble that they miss.
double ChangePointDetector::noise() const {
  if (history_.size() < 4) return 0.1;
  std::vector<double> differences;
  for (std::size_t i = 1; i < history_.size(); ++i) differences.push_back(std::abs(history_[i] - history_[i - 1]));
  double sigma = median(std::move(differences), 0) / 0.954;
  if (state_ != State::learning) {
    std::vector<double> steady = atLevel();
    if (steady.size() >= 8) sigma = std::max(sigma, robustDeviationOf(std::move(steady)));
  }
  // Few samples know the noise badly.
  return std::max(sigma, leastNoise) * (1 + 2.0 / static_cast<double>(history_.size()));
}

/// As many samples as make it unlikely (less than one in a million) that they are all spikes, at the rate seen so far.
int ChangePointDetector::lastingSamples() const {
  const double rate = (0.02 + spikes_) / (20 + watched_);
  return std::clamp(static_cast<int>(std::ceil(std::log(6e-7) / std::log(rate))), 3, 8);
}

void ChangePointDetector::countSpikes(double value, double sigma) {
  const double distance = value - level_;
  const int side = std::abs(distance) < std::max(0.75 * threshold_, 3.5 * sigma) ? 0 : distance > 0 ? 1 : -1;
  watched_ = 0.999 * watched_ + 1;
  spikes_ *= 0.999;
  if (side == 0 || side * streak_ < 0) {
    spikes_ += std::abs(streak_);  // the streak has ended without a change: it was spikes
    streak_ = 0;
  }
  streak_ += side;
}

std::optional<Change> ChangePointDetector::add(double milliseconds) {
  if (!(milliseconds > 0) || !std::isfinite(milliseconds)) return std::nullopt;
  const double value = std::log(milliseconds), sigma = noise();
  if (state_ != State::learning) countSpikes(value, sigma);
  history_.push_back(value);
  if (history_.size() > keptSamples) history_.pop_front();
  ++added_;
  posterior_.add(value, sigma, std::clamp((0.1 + spikes_) / (20 + watched_), 1e-3, 0.2));

  if (state_ == State::learning) {
    const std::int64_t start = posterior_.likeliestStart();
    if (added_ - start < learningSamples) return std::nullopt;
    state_ = State::healthy;
    levelStart_ = start;
    healthy_ = level_ = median(newest(added_ - start), 0);
    return std::nullopt;
  }
  if (streak_ == 0) residuals_.push_back({added_ - 1, value - level_});
  if (residuals_.size() > keptSamples) residuals_.pop_front();
  if (const auto candidate = findChange()) return accept(*candidate, sigma);
  refineLevel();
  return std::nullopt;
}

void ChangePointDetector::refineLevel() {
  if (streak_ != 0 || added_ - levelStart_ > refiningSamples) return;
  level_ = median(newest(added_ - levelStart_), 0);
  if (state_ == State::healthy) healthy_ = level_;
}

std::optional<ChangePointDetector::Candidate> ChangePointDetector::findChange() const {
  const double sigma = noise();
  auto candidate = lastingStreak(sigma);
  if (!candidate) candidate = newRun(sigma);
  if (!candidate || candidate->confidence < wantedProbability) return std::nullopt;
  return candidate;
}

/// Sample after sample far off the level: a change even while the new level is still settling.
std::optional<ChangePointDetector::Candidate> ChangePointDetector::lastingStreak(double sigma) const {
  const int count = std::abs(streak_);
  if (count < lastingSamples()) return std::nullopt;
  for (const double sample : newest(count))
    if (std::abs(sample - level_) < clearOfNoise * sigma) return std::nullopt;
  const std::int64_t start = added_ - count;
  return Candidate{start, median(newest(std::min(count, 5)), 0), posterior_.startedSince(start - 2), isSettled(sigma)};
}

/// A run that began after the level in force did, and whose centre differs clearly though single samples may not.
std::optional<ChangePointDetector::Candidate> ChangePointDetector::newRun(double sigma) const {
  const std::int64_t start = posterior_.likeliestStart(), count = std::min<std::int64_t>(added_ - start, 32);
  if (start <= levelStart_ || count < lastingSamples()) return std::nullopt;
  const auto samples = newest(count);
  const double level = centreOf(samples), size = static_cast<double>(count);
  const double before = std::clamp(static_cast<double>(start - levelStart_), 4.0, static_cast<double>(refiningSamples));
  // The run's own spread, pooled with the known noise as long as it has few samples.
  const double own = count < 8 ? deviationOf(samples) : robustDeviationOf(samples);
  const double spread = std::max(sigma, std::sqrt((8 * sigma * sigma + (size - 1) * own * own) / (7 + size)));
  const double error = 1.05 * spread * memoryBefore(start) * std::sqrt(1 / size + 1 / before);
  if (std::abs(level - level_) < clearOfNoise * error) return std::nullopt;
  return Candidate{start, level, posterior_.startedSince(start - 2), isSettled(sigma)};
}

double ChangePointDetector::memoryBefore(std::int64_t end) const {
  std::vector<double> values;
  for (const Residual& residual : residuals_)
    if (residual.sample < end) values.push_back(residual.value);
  return memoryOf(values);
}

/// The newest three samples agree with each other.
bool ChangePointDetector::isSettled(double sigma) const {
  const auto samples = newest(3);
  const auto [least, most] = std::minmax_element(samples.begin(), samples.end());
  return *most - *least < std::max(threshold_, 4 * sigma);
}

/// The samples at the level in force; those of an open streak or of a later run are left out.
std::vector<double> ChangePointDetector::atLevel() const {
  std::int64_t end = added_ - std::abs(streak_);
  if (posterior_.likeliestStart() > levelStart_) end = std::min(end, posterior_.likeliestStart());
  std::vector<double> samples = newest(added_ - levelStart_);
  const auto later = static_cast<std::size_t>(added_ - end);
  samples.resize(samples.size() - std::min(samples.size(), later));
  return samples;
}

std::optional<Change> ChangePointDetector::accept(const Candidate& candidate, double sigma) {
  const double change = candidate.level - level_;
  Change found{ChangeKind::onset, std::exp(level_), std::exp(candidate.level), candidate.confidence, candidate.start};
  const double count = static_cast<double>(added_ - candidate.start), error = 2 * sigma / std::sqrt(count);
  const bool backToHealthy = state_ == State::slow && candidate.level < healthy_ + threshold_;
  // A job that is nearly healthy again need not have been very slow.
  const double needed = backToHealthy && candidate.level < healthy_ + threshold_ / 2 ? threshold_ / 3 : threshold_;
  if (std::abs(change) < needed) return std::nullopt;
  // On the way down the level decides between easing and relief: wait until it has settled.
  if (change < 0 && !candidate.settled) return std::nullopt;
  const bool maybeHealthy = !backToHealthy && candidate.level < healthy_ + threshold_ + error;
  if (change < 0 && state_ == State::slow && maybeHealthy && count < 16) return std::nullopt;

  levelStart_ = candidate.start;
  level_ = candidate.level;
  streak_ = 0;
  if (state_ == State::healthy) {
    if (change < 0) {
      healthy_ = level_;
      return std::nullopt;
    }
    state_ = State::slow;
    return found;
  }
  if (backToHealthy) {
    state_ = State::healthy;
    found.kind = ChangeKind::relief;
    return found;
  }
  found.kind = change > 0 ? ChangeKind::worsening : ChangeKind::easing;
  return found;
}

}  // namespace falcon::instrument
