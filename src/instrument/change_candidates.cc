// What may be a change: where the newest samples differ from the level, and from where on.
#include <algorithm>
#include <cmath>

#include "instrument/change_point.h"
#include "instrument/robust_centre.h"

namespace falcon::instrument {
namespace {

/// Standard errors between the levels. Some ten million samples are judged in ten thousand jobs, each at several run
/// lengths, with an estimated deviation.
constexpr double clearOfNoise = 5.5, longClearOfNoise = 5.2;
/// Of windows of 3 or 4 samples where far ones are not rare: nearly as far as windows can be.
constexpr double mostClear = 6.3;
/// The same for a streak, of which every sample is so far off.
constexpr double streakClearOfNoise = 5;
/// What a sample counts at most, in deviations: a window is not carried by one.
constexpr double mostDistance = 3.5, spikyDistance = 2.5;

}  // namespace

/// Sample after sample far off the level: a change even while the new level is still settling.
std::optional<ChangePointDetector::Candidate> ChangePointDetector::lastingStreak() const {
  const bool wild = isBeyondSpikes() && streak_ >= wildSamples;
  const int count = wild ? wildSamples : std::abs(streak_);
  if (count < lastingSamples() && !wild) return std::nullopt;
  // Long streaks may lie nearer: their length speaks.
  const double clear = count < movedSamples - 2 ? streakClearOfNoise * deviation() : 0;
  for (const double sample : newest(count))
    if (std::abs(sample - level_) < clear) return std::nullopt;
  const std::int64_t start = added_ - count;
  double confidence = posterior_.startedSince(start - 2);
  if (count >= movedSamples - 2 || wild) confidence = std::max(confidence, 1 - std::pow(spikeRate(), count));
  return Candidate{start, robustCentre(newest(std::min(count, 5)), 0), confidence};
}

/// Sample after sample where the healthy ones were: that level is known, so less needs to be shown than for a new one.
std::optional<ChangePointDetector::Candidate> ChangePointDetector::healthyStreak() const {
  if (state_ != State::slow) return std::nullopt;
  const double rate = (0.5 + visits_) / (20 + slowSamples_);
  const int needed = std::clamp(static_cast<int>(std::ceil(std::log(1e-5) / std::log(rate))), 3, 8);
  if (visit_ < needed) return std::nullopt;
  const std::int64_t start = added_ - visit_;
  // BOCD may have taken the slow ones for outliers: then it sees no change back either.
  const bool farApart = level_ - healthyCeiling_ > std::max(2 * threshold_, 8 * deviation());
  const double confidence = std::max(posterior_.startedSince(start - 2), farApart ? 1 - std::pow(rate, visit_) : 0);
  return Candidate{start, robustCentre(newest(std::min(visit_, 8)), 0), confidence};
}

/// The newest samples whose mean is clearest of the noise, though single ones may not be.
std::optional<ChangePointDetector::Candidate> ChangePointDetector::clearestWindow() const {
  const double sigma = deviation();
  const std::int64_t most =
      std::min({added_ - levelStart_ - 2, longestWindow, static_cast<std::int64_t>(history_.size())});
  const auto before = static_cast<double>(std::min(added_ - levelStart_, followedSamples));
  const bool heavyTails = spikeRate() > 0.002;
  const double cut = spikes_ > 4 && spikeRate() > 0.03 ? spikyDistance : mostDistance;
  double sum = 0, clearest = 0;
  std::int64_t count = 0;
  for (std::int64_t i = 1; i <= most; ++i) {
    const double distance = (history_[history_.size() - static_cast<std::size_t>(i)] - level_) / sigma;
    sum += std::clamp(distance, -cut, cut);
    const auto size = static_cast<double>(i);
    const double clear = std::abs(sum) / std::sqrt(size + size * size / before);
    if (i < lastingSamples() || clear <= clearest || (i < 5 && heavyTails && clear < mostClear)) continue;
    clearest = clear;
    count = i;
  }
  const double wanted = count < 10 ? clearOfNoise : longClearOfNoise;
  const double doubt = healthyNoise_.count() < 32 ? 1 + 2 / static_cast<double>(healthyNoise_.count()) : 1;
  // Of few samples fewer have a neighbour among them.
  const double shared = 1 + (memory() - 1) * (1 - 1 / static_cast<double>(std::max<std::int64_t>(count, 1)));
  if (clearest < wanted * shared * doubt) return std::nullopt;
  // Where it began BOCD knows better: here far values are cut.
  const std::int64_t start = std::clamp(posterior_.likeliestStart(), added_ - count, added_ - lastingSamples());
  const auto samples = newest(added_ - start);
  const double level = robustCentre(samples, sigma), middle = (level + level_) / 2;
  // Few samples must belong to the new level for the most part. In a young job that may have a second mode, so many
  // that as many of an alternation by chance are as rare (one in 4000) as twelve of twelve.
  const auto belongs = [&](double sample) { return (sample > middle) == (level > level_); };
  const auto others = std::ssize(samples) - std::count_if(samples.begin(), samples.end(), belongs);
  const auto size = std::ssize(samples);
  const bool twoModes = lastingSamples() > movedSamples;
  const std::ptrdiff_t allowed = twoModes              ? std::max<std::ptrdiff_t>(0, (size - 12) / 4)
                                 : size < movedSamples ? 1
                                                       : size / 3;
  if ((size < fewSamples || twoModes) && (others > allowed || !belongs(samples.back()))) return std::nullopt;
  // BOCD is slow to believe in small steps; the likelihood ratio of this very step, one of 250 expected, is clear.
  const double byRatio = 1 / (1 + 250 * std::exp(-clearest * clearest / (2 * memory() * memory())));
  return Candidate{start, level, std::max(posterior_.startedSince(start - 2), byRatio)};
}

/// The level has crept away from where it was entered.
std::optional<ChangePointDetector::Candidate> ChangePointDetector::drift() const {
  const DriftSum* raised = upward_.raised() ? &upward_ : downward_.raised() ? &downward_ : nullptr;
  if (!raised) return std::nullopt;
  const std::int64_t length = std::min<std::int64_t>(raised->length(), longestWindow);
  return Candidate{added_ - raised->length(), robustCentre(newest(length), deviation()), raised->probability(), true};
}

}  // namespace falcon::instrument
