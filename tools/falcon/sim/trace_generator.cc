#include "sim/trace_generator.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/median.h"

namespace falcon::sim {
namespace {

/// Draws from one job's random numbers.
class Dice {
 public:
  explicit Dice(std::mt19937_64& random) : random_(random) {}

  bool chance(double probability) { return uniform({0, 1}) < probability; }
  double uniform(Range range) { return std::uniform_real_distribution<>(range.low, range.high)(random_); }
  double logUniform(Range range) { return std::exp(uniform({std::log(range.low), std::log(range.high)})); }
  std::int64_t whole(Range range) { return std::lround(uniform(range)); }
  double normal() { return std::normal_distribution<>()(random_); }
  double student3() { return std::student_t_distribution<>(3)(random_) / std::sqrt(3.0); }
  double logNormal(double median, double spread, Range limits) {
    return std::clamp(median * std::exp(spread * normal()), limits.low, limits.high);
  }

 private:
  std::mt19937_64& random_;
};

using Series = std::vector<double>;  // logarithms of factors, one an iteration

void addJitter(Series& series, Dice& dice, const TraceParameters& p) {
  const double kind = dice.uniform({0, 1});
  const Range range = kind < p.veryJitteryShare                    ? p.veryJittery
                      : kind < p.veryJitteryShare + p.jitteryShare ? p.jittery
                                                                   : p.calm;
  const double sigma = dice.logUniform(range);
  const bool heavy = dice.chance(p.heavyTailShare);
  const double memory = dice.chance(p.memoryShare) ? dice.uniform(p.memory) : 0;
  double before = 0;
  for (double& value : series) {
    before = memory * before + std::sqrt(1 - memory * memory) * (heavy ? dice.student3() : dice.normal());
    value += sigma * before;
  }
}

void addDrift(Series& series, Dice& dice, const TraceParameters& p) {
  if (!dice.chance(p.driftShare)) return;
  const double amplitude = dice.uniform(p.driftAmplitude), period = dice.logUniform(p.driftPeriod);
  const double phase = dice.uniform({0, 2 * std::numbers::pi});
  for (std::size_t i = 0; i < series.size(); ++i)
    series[i] += amplitude * std::sin(2 * std::numbers::pi * static_cast<double>(i) / period + phase);
}

void addAlternation(Series& series, Dice& dice, const TraceParameters& p) {
  if (!dice.chance(p.alternationShare)) return;
  const double amplitude = dice.uniform(p.alternation);
  const bool strict = dice.chance(0.5);
  for (std::size_t i = 0; i < series.size(); ++i)
    series[i] += std::log1p((strict ? i % 2 == 0 : dice.chance(0.5)) ? amplitude : -amplitude);
}

void addSpikes(Series& series, Dice& dice, const TraceParameters& p) {
  if (dice.chance(p.regularSpikeShare)) {
    const auto every = static_cast<std::size_t>(dice.logUniform(p.regularSpikeEvery));
    const double factor = dice.logUniform(p.regularSpike);
    for (std::size_t i = every - 1; i < series.size(); i += every) series[i] += std::log(factor);
  }
  const double rate = dice.uniform({0, p.irregularSpikeRate});
  for (double& value : series)
    if (dice.chance(rate)) value += std::log(dice.logUniform(p.irregularSpike));
}

void addWarmUp(Series& series, Dice& dice, const TraceParameters& p) {
  const auto count = dice.whole(p.warmUpIterations);
  for (std::int64_t i = 0; i < count; ++i) series[static_cast<std::size_t>(i)] += std::log(dice.logUniform(p.warmUp));
}

Series workOf(std::size_t length, Dice& dice, const TraceParameters& p, Series& series) {
  Series work(length, 1);
  if (!dice.chance(p.longerSequencesShare)) return work;
  const auto from = static_cast<std::size_t>(dice.uniform({0.2, 0.8}) * static_cast<double>(length));
  const double factor = dice.uniform(p.longerSequences), error = p.workError * dice.normal();
  for (std::size_t i = from; i < length; ++i) {
    work[i] = factor;
    series[i] += error;
  }
  return work;
}

/// How slow each iteration of an episode is: logarithms of factors.
struct Shape {
  Series slow;
  double size;
  std::int64_t atSize;
};

Shape staircase(std::int64_t length, Dice& dice, const TraceParameters& p) {
  Shape shape{{}, 0, 0};
  double level = 0;
  while (static_cast<std::int64_t>(shape.slow.size()) < length) {
    level += std::log1p(dice.uniform(p.stair));
    const auto step =
        std::min<std::int64_t>(dice.whole(p.stairLength), length - static_cast<std::int64_t>(shape.slow.size()));
    shape.slow.insert(shape.slow.end(), static_cast<std::size_t>(step), level);
    shape.atSize = step;
    if (level > std::log(1.5)) {  // it stays there
      shape.atSize = length - static_cast<std::int64_t>(shape.slow.size()) + step;
      shape.slow.resize(static_cast<std::size_t>(length), level);
    }
  }
  shape.size = std::expm1(level);
  return shape;
}

Shape plateau(std::int64_t length, double median, Dice& dice, const TraceParameters& p) {
  const double size = dice.logNormal(median, p.sizeSpread, p.size);
  Shape shape{Series(static_cast<std::size_t>(length), std::log1p(size)), size, length};
  const std::int64_t ramp = std::min(dice.chance(p.rampShare) ? dice.whole(p.ramp) : dice.whole({0, 1}), length / 2);
  for (std::int64_t i = 0; i < ramp; ++i)
    shape.slow[static_cast<std::size_t>(i)] *= static_cast<double>(i + 1) / static_cast<double>(ramp + 1);
  shape.atSize -= ramp;
  if (dice.chance(p.worseningShare)) {
    const double more = std::log1p(size * dice.uniform({0.2, 1}));
    for (std::int64_t i = length / 3; i < 2 * length / 3; ++i) shape.slow[static_cast<std::size_t>(i)] += more;
  }
  return shape;
}

void addEpisodes(SimulatedJob& job, Series& series, Dice& dice, const TraceParameters& p) {
  const auto length = static_cast<std::int64_t>(series.size());
  std::int64_t start = dice.whole({p.firstStart.low, std::min(p.firstStart.high, 0.4 * static_cast<double>(length))});
  for (bool more = true; more && start + 20 < length; more = dice.chance(p.secondEpisode)) {
    const double longest = std::min(p.duration.high, 0.6 * static_cast<double>(length));
    const auto wanted = std::lround(dice.logNormal(p.durationMedian, p.durationSpread, {p.duration.low, longest}));
    const std::int64_t count = std::min<std::int64_t>(wanted, length - start);
    const Shape shape =
        dice.chance(p.stairShare) ? staircase(count, dice, p) : plateau(count, job.population->sizeMedian, dice, p);
    const double jitter = dice.uniform({0, job.population->extraJitter}) * std::log1p(shape.size);
    for (std::int64_t i = 0; i < count; ++i)
      series[static_cast<std::size_t>(start + i)] += shape.slow[static_cast<std::size_t>(i)] + jitter * dice.normal();
    job.episodes.push_back({{start + 1, start + 1 + count}, shape.size, shape.atSize});
    start += count + dice.whole(p.gap);
  }
}

double robustDeviationOfTens(const Series& series) {
  Series means;
  for (std::size_t i = 0; i + 10 <= series.size(); i += 10) {
    double sum = 0;
    for (std::size_t k = i; k < i + 10; ++k) sum += series[k];
    means.push_back(sum / 10);
  }
  const double centre = median(means);
  for (double& mean : means) mean = std::abs(mean - centre);
  return 1.4826 * median(std::move(means));
}

}  // namespace

const char* nameOf(Strength strength) {
  constexpr const char* names[] = {"strong", "below 5 %", "5 to 10 %", "shorter than 20 iterations",
                                   "inside the noise"};
  return names[static_cast<int>(strength)];
}

Strength strengthOf(const SimulatedEpisode& episode, const SimulatedJob& job) {
  if (episode.size < 0.05) return Strength::below5Percent;
  if (episode.size < 0.1) return Strength::below10Percent;
  if (episode.atSize < 20) return Strength::shorterThan20;
  if (std::log1p(episode.size) <= 3 * job.deviationOfTen) return Strength::insideNoise;
  return Strength::strong;
}

SimulatedJob simulateJob(const Population& population, std::mt19937_64& random, const TraceParameters& parameters) {
  Dice dice(random);
  const auto length = static_cast<std::size_t>(dice.logUniform(parameters.jobLength));
  SimulatedJob job{&population, {}, {}, {}, 0};
  Series series(length, 0.0);
  addJitter(series, dice, parameters);
  addDrift(series, dice, parameters);
  addAlternation(series, dice, parameters);
  addSpikes(series, dice, parameters);
  job.work = workOf(length, dice, parameters, series);
  job.deviationOfTen = robustDeviationOfTens(series);
  addWarmUp(series, dice, parameters);
  if (dice.chance(static_cast<double>(population.failSlowJobs) / population.jobs))
    addEpisodes(job, series, dice, parameters);
  const double healthy = dice.logUniform({200, 20000});
  for (std::size_t i = 0; i < length; ++i) job.milliseconds.push_back(healthy * job.work[i] * std::exp(series[i]));
  return job;
}

SimulatedJob SimulatedJobs::operator[](int index) const {
  std::seed_seq seed{static_cast<std::uint32_t>(seed_), static_cast<std::uint32_t>(seed_ >> 32),
                     static_cast<std::uint32_t>(index)};
  std::mt19937_64 random(seed);
  // Spread evenly, so that any number of jobs is mixed as the papers' are.
  constexpr int all = singleNode.jobs + fourNodes.jobs;
  const bool isFourNodes = (static_cast<std::int64_t>(index) + 1) * fourNodes.jobs / all >
                           static_cast<std::int64_t>(index) * fourNodes.jobs / all;
  return simulateJob(isFourNodes ? fourNodes : singleNode, random, parameters_);
}

std::vector<replay::Recorded> timesOf(const SimulatedJob& job) {
  std::vector<replay::Recorded> times;
  times.reserve(job.milliseconds.size());
  for (std::size_t i = 0; i < job.milliseconds.size(); ++i)
    times.push_back({static_cast<std::int64_t>(i) + 1, job.milliseconds[i] / job.work[i]});
  return times;
}

}  // namespace falcon::sim
