#include "instrument/change_candidates.h"

#include <algorithm>
#include <cmath>

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

bool isBeyondTheMiddle(double sample, double level, double from) {
  return (sample > (level + from) / 2) == (level > from);
}

/// How clear of the noise the mean of the newest `count` samples is, in standard errors.
struct Window {
  std::int64_t count = 0;
  double clear = 0;
};

Window clearestOf(const Evidence& evidence) {
  const auto& values = evidence.samples.values();
  const std::int64_t since = evidence.samples.added() - evidence.level.start;
  const std::int64_t most = std::min({since - 2, longestWindow, static_cast<std::int64_t>(values.size())});
  const auto before = static_cast<double>(std::min(since, followedSamples));
  const bool heavyTails = evidence.spikes.rate() > 0.002;
  const double cut = evidence.spikes.areFrequent() ? spikyDistance : mostDistance;
  const int lasting = evidence.lastingSamples();
  double sum = 0;
  Window clearest;
  for (std::int64_t i = 1; i <= most; ++i) {
    const double sample = values[values.size() - static_cast<std::size_t>(i)];
    sum += std::clamp((sample - evidence.level.value) / evidence.deviation, -cut, cut);
    const auto size = static_cast<double>(i);
    const double clear = std::abs(sum) / std::sqrt(size + size * size / before);
    if (i < lasting || clear <= clearest.clear || (i < 5 && heavyTails && clear < mostClear)) continue;
    clearest = {i, clear};
  }
  return clearest;
}

/// What a window must be, in standard errors.
double wantedOf(const Window& window, const Evidence& evidence) {
  const auto told = static_cast<double>(evidence.noiseSamples);
  const double doubt = evidence.noiseSamples < 32 ? 1 + 2 / told : 1;
  // Of few samples fewer have a neighbour among them.
  const double shared =
      1 + (evidence.memory - 1) * (1 - 1 / static_cast<double>(std::max<std::int64_t>(window.count, 1)));
  return (window.count < 10 ? clearOfNoise : longClearOfNoise) * shared * doubt;
}

}  // namespace

bool isBeyondSpikes(const Evidence& evidence) {
  const auto& values = evidence.samples.values();
  if (evidence.samples.added() <= warmUpSamples + wildSamples || std::ssize(values) <= wildSamples) return false;
  const auto newest = values.end() - wildSamples;
  const double burst = evidence.spikes.burstHeight(evidence.samples.added());
  const double highest = std::max(*std::max_element(values.begin(), newest),
                                  evidence.level.value + std::max(evidence.limits.large(), burst));
  return std::all_of(newest, values.end(), [=](double sample) { return sample > highest; });
}

std::optional<Candidate> lastingStreak(const Evidence& evidence, bool wild) {
  const int streak = evidence.spikes.streak();
  wild = wild && streak >= wildSamples;
  const int count = wild ? wildSamples : std::abs(streak);
  if (count < evidence.lastingSamples() && !wild) return std::nullopt;
  // Long streaks may lie nearer: their length speaks.
  const double clear = count < movedSamples - 2 ? streakClearOfNoise * evidence.deviation : 0;
  for (const double sample : evidence.samples.newest(count))
    if (std::abs(sample - evidence.level.value) < clear) return std::nullopt;
  const std::int64_t start = evidence.samples.added() - count;
  double confidence = evidence.posterior.startedSince(start - 2);
  if (count >= movedSamples - 2 || wild) confidence = std::max(confidence, 1 - std::pow(evidence.spikes.rate(), count));
  return Candidate{start, robustCentre(evidence.samples.newest(std::min(count, 5)), 0), confidence};
}

std::optional<Candidate> healthyStreak(const Evidence& evidence, const HealthyVisits& visits,
                                       const HealthyLevel& healthy) {
  const double rate = visits.rate();
  const int needed = std::clamp(static_cast<int>(std::ceil(std::log(1e-5) / std::log(rate))), 3, 8);
  if (visits.streak() < needed) return std::nullopt;
  const std::int64_t start = evidence.samples.added() - visits.streak();
  // BOCD may have taken the slow ones for outliers: then it sees no change back either.
  const bool farApart =
      evidence.level.value - healthy.ceiling > std::max(2 * evidence.limits.threshold, 8 * evidence.deviation);
  const double confidence =
      std::max(evidence.posterior.startedSince(start - 2), farApart ? 1 - std::pow(rate, visits.streak()) : 0);
  return Candidate{start, robustCentre(evidence.samples.newest(std::min(visits.streak(), 8)), 0), confidence};
}

std::optional<Candidate> clearestWindow(const Evidence& evidence) {
  const Window window = clearestOf(evidence);
  if (window.clear < wantedOf(window, evidence)) return std::nullopt;
  const std::int64_t added = evidence.samples.added();
  const int lasting = evidence.lastingSamples();
  // Where it began BOCD knows better: here far values are cut.
  const std::int64_t start = std::clamp(evidence.posterior.likeliestStart(), added - window.count, added - lasting);
  const auto samples = evidence.samples.newest(added - start);
  const double level = robustCentre(samples, evidence.deviation);
  // Few samples must belong to the new level for the most part. In a young job that may have a second mode, so many
  // that as many of an alternation by chance are as rare (one in 4000) as twelve of twelve.
  const auto belongs = [&](double sample) { return isBeyondTheMiddle(sample, level, evidence.level.value); };
  const auto size = std::ssize(samples), others = size - std::count_if(samples.begin(), samples.end(), belongs);
  const bool twoModes = lasting > movedSamples;
  const std::ptrdiff_t allowed = twoModes              ? std::max<std::ptrdiff_t>(0, (size - 12) / 4)
                                 : size < movedSamples ? 1
                                                       : size / 3;
  if ((size < fewSamples || twoModes) && (others > allowed || !belongs(samples.back()))) return std::nullopt;
  // BOCD is slow to believe in small steps; the likelihood ratio of this very step, one of 250 expected, is clear.
  const double memory = evidence.memory;
  const double byRatio = 1 / (1 + 250 * std::exp(-window.clear * window.clear / (2 * memory * memory)));
  return Candidate{start, level, std::max(evidence.posterior.startedSince(start - 2), byRatio)};
}

std::optional<Candidate> drift(const Evidence& evidence) {
  const PresentLevel& level = evidence.level;
  const DriftSum* raised = level.upward.raised() ? &level.upward : level.downward.raised() ? &level.downward : nullptr;
  if (!raised) return std::nullopt;
  const std::int64_t length = std::min<std::int64_t>(raised->length(), longestWindow);
  return Candidate{evidence.samples.added() - raised->length(),
                   robustCentre(evidence.samples.newest(length), evidence.deviation), raised->probability(), true};
}

int belonging(const Evidence& evidence, const Candidate& candidate) {
  const double way = candidate.level - evidence.level.value, side = way > 0 ? 1 : -1;
  const double least = std::min(std::abs(way) / 2, std::max(0.85 * evidence.limits.threshold, 5 * evidence.deviation));
  const auto samples = evidence.samples.newest(evidence.samples.added() - candidate.start);
  return static_cast<int>(std::count_if(samples.begin(), samples.end(),
                                        [&](double sample) { return side * (sample - evidence.level.value) > least; }));
}

}  // namespace falcon::instrument
