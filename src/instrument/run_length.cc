#include "instrument/run_length.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace falcon::instrument {
namespace {

/// One change in so many iterations is expected; the verification that follows decides, so this is not critical.
constexpr double hazard = 1.0 / 250;
/// Where a new run may lie: half a unit of the logarithm around, i.e. factors up to three are no surprise.
constexpr double priorSpread = 0.5;
constexpr double priorShape = 2;
/// Density of an outlier: spread over about two units of the logarithm.
constexpr double outlierDensity = 0.5;

/// The ratio of Gamma functions in the density is its asymptotic series, exact to 1e-5 from 4 degrees of freedom on:
/// std::lgamma took most of the update's time.
double studentDensity(double value, double centre, double squaredScale, double freedom) {
  const double z2 = (value - centre) * (value - centre) / squaredScale;
  const double correction = (1 / (24 * freedom * freedom) - 0.25) / freedom;
  return std::exp(correction - (freedom + 1) / 2 * std::log1p(z2 / freedom)) /
         std::sqrt(2 * std::numbers::pi * squaredScale);
}

}  // namespace

void RunLengthPosterior::add(double value, double noise, double outlierRate) {
  const double variance = noise * noise;
  const double priorMean = runs_.empty() ? value : runs_[likeliest_].mean;
  const double changed = runs_.empty() ? 1 : hazard;
  for (Run& run : runs_) run.weight *= 1 - hazard;
  runs_.push_back(
      {added_++, changed, priorMean, variance / (priorSpread * priorSpread), priorShape, priorShape * variance});

  double total = 0;
  for (Run& run : runs_) {
    const double squaredScale = run.scale * (run.count + 1) / (run.shape * run.count);
    const double ordinary = (1 - outlierRate) * studentDensity(value, run.mean, squaredScale, 2 * run.shape);
    const double outlying = outlierRate * outlierDensity;
    run.weight *= ordinary + outlying;
    total += run.weight;
    // What is most likely an outlier teaches the run nothing.
    const double share = ordinary / (ordinary + outlying);
    const double distance = value - run.mean, count = run.count + share;
    run.scale += share * run.count / (2 * count) * distance * distance;
    run.mean += share / count * distance;
    run.shape += share / 2;
    run.count = count;
  }
  for (Run& run : runs_) run.weight /= total;
  const auto lighter = [](const Run& a, const Run& b) { return a.weight < b.weight; };
  if (runs_.size() > keptRuns) runs_.erase(std::min_element(runs_.begin(), runs_.end(), lighter));
  std::erase_if(runs_, [](const Run& run) { return run.weight < 1e-12; });
  likeliest_ = static_cast<std::size_t>(std::max_element(runs_.begin(), runs_.end(), lighter) - runs_.begin());
}

std::int64_t RunLengthPosterior::likeliestStart() const {
  return runs_.empty() ? 0 : runs_[likeliest_].start;
}

double RunLengthPosterior::startedSince(std::int64_t first) const {
  double probability = 0;
  for (const Run& run : runs_)
    if (run.start >= first) probability += run.weight;
  return probability;
}

}  // namespace falcon::instrument
