#include "instrument/young_job.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "instrument/noise_estimate.h"
#include "instrument/robust_centre.h"

namespace falcon::instrument {
namespace {

/// A job settles within so many iterations. Later the level follows by itself, and calm ones may be chance.
constexpr std::int64_t samplesOfAYoungJob = 256;
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

double youngDeviation(std::vector<double> samples) {
  const double middle = robustCentre(samples, leastNoise);
  std::sort(samples.begin(), samples.end(),
            [=](double a, double b) { return std::abs(a - middle) < std::abs(b - middle); });
  samples.resize(samples.size() - 2);
  return std::max(leastNoise, 1.7 * plainDeviation(samples));
}

bool isWarmedUp(const Alternation& samples, const ChangeLimits& limits) {
  if (samples.added() < learningSamples) return false;
  const auto newest = samples.newest(learningSamples);
  const auto half = newest.begin() + learningSamples / 2;
  return *std::max_element(newest.begin(), half) <= *std::max_element(half, newest.end()) + limits.threshold;
}

bool isLevelOfWarmUp(const Alternation& samples, double level, const ChangeLimits& limits) {
  if (samples.added() >= 4 * warmUpSamples) return false;
  const auto newest = samples.newest(movedSamples);
  return std::all_of(newest.begin(), newest.end(), [&](double sample) { return sample < level - limits.large(); });
}

std::int64_t calmSamples(const Alternation& samples, double deviation, double highest) {
  if (samples.added() > samplesOfAYoungJob || samples.added() % 4 != 0 || deviation < 2 * leastNoise) return 0;
  for (const auto& [count, share] : calms) {
    if (std::ssize(samples.values()) < count + learningSamples) break;
    const auto newest = samples.newest(count);
    const double centre = robustCentre(newest, deviation);
    if (centre > highest) continue;
    const auto half = newest.begin() + count / 2;
    const double older = deviationAround(centre, {newest.begin(), half});
    const double newer = deviationAround(centre, {half, newest.end()});
    // While the older ones scatter more, some of them still belong to what is over: soon it will be known better.
    if (std::max(older, newer) < share * deviation && older < 1.5 * newer) return count;
  }
  return 0;
}

}  // namespace falcon::instrument
