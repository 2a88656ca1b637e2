#include "instrument/alternation.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "instrument/change_limits.h"

namespace falcon::instrument {
namespace {

constexpr std::size_t keptSamples = 128;
/// A young job shows its pattern soon.
constexpr std::int64_t patternEvery = 32, youngPatternEvery = 8, youngSamples = 64;
/// Of samples of one pattern: fewer would be mistaken for none.
constexpr std::int64_t leastOfPattern = 48;
/// So many samples tell that a pattern has ended or slipped: all its turns, and a few more where these are few.
constexpr std::size_t leastFollowed = 5, moreThanPeriod = 2;
/// Without it, or with another turn, the newest samples lie so much closer together.
constexpr double muchCloser = 0.4;
/// And no farther than noise: in deviations. Two spikes in an alternation make its turns alike, but not that close.
constexpr double mostSpread = 5;

}  // namespace

void Alternation::add(double raw) {
  values_.push_back(without(raw));
  raw_.push_back(raw);
  if (raw_.size() > keptSamples) raw_.pop_front();
  if (values_.size() > keptSamples) values_.pop_front();
  ++added_;
}

std::vector<double> Alternation::newest(std::int64_t count) const {
  const auto available = std::min<std::int64_t>(count, static_cast<std::int64_t>(values_.size()));
  return {values_.end() - available, values_.end()};
}

std::optional<Alternation::Other> Alternation::refind() {
  if (added_ % (added_ < youngSamples ? youngPatternEvery : patternEvery) != 0) return std::nullopt;
  const std::int64_t first = std::max(oldest(), since_);
  if (since_ > 0 && added_ - first < leastOfPattern) return std::nullopt;
  PeriodicPattern found = findPattern({raw_.end() - (added_ - first), raw_.end()}, first, pattern_);
  if (found.offsets.empty() && pattern_.offsets.empty()) return std::nullopt;
  Other other{pattern_, found, first};
  set(std::move(found), first);
  return other;
}

/// From that sample on, one of those that are kept. What stays known of older ones is as it was.
void Alternation::set(PeriodicPattern pattern, std::int64_t since) {
  pattern_ = std::move(pattern);
  for (std::int64_t sample = since; sample < added_; ++sample) {
    const auto at = static_cast<std::size_t>(sample - oldest());
    values_[at] = raw_[at] - pattern_.at(sample);
  }
}

/// How far apart the newest `count` samples, of which the first has this number, lie without the pattern.
double Alternation::spreadWithout(const PeriodicPattern& pattern, std::size_t count, std::int64_t first) const {
  double least = std::numeric_limits<double>::infinity(), most = -least;
  for (std::size_t i = 0; i < count; ++i) {
    const double value = raw_[raw_.size() - count + i] - pattern.at(first + static_cast<std::int64_t>(i));
    least = std::min(least, value);
    most = std::max(most, value);
  }
  return most - least;
}

std::int64_t Alternation::follow(double deviation) {
  const std::size_t period = pattern_.offsets.size();
  const std::size_t count = std::max(period + moreThanPeriod, leastFollowed);
  if (period == 0 || raw_.size() < count) return 0;
  const std::int64_t first = added_ - static_cast<std::int64_t>(count);
  const double present = spreadWithout(pattern_, count, first);
  if (present < std::max(threshold_ / 2, 4 * leastNoise)) return 0;
  PeriodicPattern best, turned = pattern_;
  double least = spreadWithout(best, count, first);
  for (std::size_t turn = 1; turn < period; ++turn) {
    std::rotate(turned.offsets.begin(), turned.offsets.begin() + 1, turned.offsets.end());
    const double spread = spreadWithout(turned, count, first);
    if (spread >= least) continue;
    least = spread;
    best = turned;
  }
  if (least > muchCloser * present || least > std::max(threshold_ / 2, mostSpread * deviation)) return 0;
  since_ = first;
  set(std::move(best), first);
  return static_cast<std::int64_t>(count);
}

}  // namespace falcon::instrument
