// Iterations that take turns: what repeats is taken off before anything is judged, and left when it ends.
#include <algorithm>
#include <limits>

#include "instrument/change_point.h"

namespace falcon::instrument {
namespace {

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

/// How far apart the newest samples lie without the pattern.
/// @param first  number of the first of these `count`
double spreadWithout(const PeriodicPattern& pattern, const std::deque<double>& samples, std::size_t count,
                     std::int64_t first) {
  double least = std::numeric_limits<double>::infinity(), most = -least;
  for (std::size_t i = 0; i < count; ++i) {
    const double value = samples[samples.size() - count + i] - pattern.at(first + static_cast<std::int64_t>(i));
    least = std::min(least, value);
    most = std::max(most, value);
  }
  return most - least;
}

}  // namespace

void ChangePointDetector::refindPattern() {
  if (added_ % (added_ < youngSamples ? youngPatternEvery : patternEvery) != 0) return;
  const std::int64_t oldest = std::max(added_ - static_cast<std::int64_t>(raw_.size()), patternSince_);
  if (patternSince_ > 0 && added_ - oldest < leastOfPattern) return;
  PeriodicPattern found = findPattern({raw_.end() - (added_ - oldest), raw_.end()}, oldest, pattern_);
  if (found.offsets.empty() && pattern_.offsets.empty()) return;
  noise().adjust([&](std::size_t age, double residual) {
    const std::int64_t sample = settled_ - 1 - static_cast<std::int64_t>(age);
    return sample < oldest ? residual : residual + pattern_.at(sample) - found.at(sample);
  });
  setPattern(std::move(found), oldest);
}

/// From that sample on, one of those that are kept. What stays known of older ones is as it was.
void ChangePointDetector::setPattern(PeriodicPattern pattern, std::int64_t since) {
  pattern_ = std::move(pattern);
  const std::int64_t oldest = added_ - static_cast<std::int64_t>(raw_.size());
  for (std::int64_t sample = since; sample < added_; ++sample) {
    const auto at = static_cast<std::size_t>(sample - oldest);
    history_[at] = raw_[at] - pattern_.at(sample);
  }
  posterior_ = RunLengthPosterior(added_ - 8);
  for (const double value : newest(8)) posterior_.add(value, deviation(), 0.01);
}

/// The pattern has ended (that of a slowdown that is over, for one) or has slipped by some turns: what it takes off
/// would make the newest samples alternate for as long as the pattern is not found anew.
void ChangePointDetector::followPattern() {
  const std::size_t period = pattern_.offsets.size();
  const std::size_t count = std::max(period + moreThanPeriod, leastFollowed);
  if (period == 0 || raw_.size() < count) return;
  const std::int64_t first = added_ - static_cast<std::int64_t>(count);
  const double present = spreadWithout(pattern_, raw_, count, first);
  if (present < std::max(threshold_ / 2, 4 * leastNoise)) return;
  PeriodicPattern best, turned = pattern_;
  double least = spreadWithout(best, raw_, count, first);
  for (std::size_t turn = 1; turn < period; ++turn) {
    std::rotate(turned.offsets.begin(), turned.offsets.begin() + 1, turned.offsets.end());
    const double spread = spreadWithout(turned, raw_, count, first);
    if (spread >= least) continue;
    least = spread;
    best = turned;
  }
  if (least > muchCloser * present || least > std::max(threshold_ / 2, mostSpread * deviation())) return;
  patternSince_ = first;
  setPattern(std::move(best), first);
  spikes_ = std::max(0.0, spikes_ - static_cast<double>(count));  // they were none
  streak_ = 0;
  visit_ = 0;
  if (state_ == State::slow)
    for (const double value : newest(static_cast<std::int64_t>(count))) visit_ = isVisit(value) ? visit_ + 1 : 0;
}

}  // namespace falcon::instrument
