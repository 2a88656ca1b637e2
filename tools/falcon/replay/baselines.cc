#include "replay/baselines.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

namespace falcon::replay {
namespace {

using instrument::Change;
using instrument::ChangeKind;

constexpr std::size_t windowSamples = 10;
constexpr double hazard = 1.0 / 250, wantedProbability = 0.9;
constexpr std::size_t keptRuns = 200, keptSamples = 512;
/// Prior of a run: anywhere within a factor of e^0.5, with a deviation of 5 %, known as well as by two samples.
constexpr double priorCount = 0.01, priorShape = 1, priorScale = 0.05 * 0.05;

/// Of the values first ... end - 1; 0 of none.
double mean(const std::deque<double>& values, std::ptrdiff_t first, std::ptrdiff_t end) {
  return first == end
             ? 0
             : std::accumulate(values.begin() + first, values.begin() + end, 0.0) / static_cast<double>(end - first);
}

double studentLogDensity(double value, double centre, double squaredScale, double freedom) {
  const double z2 = (value - centre) * (value - centre) / squaredScale;
  return std::lgamma((freedom + 1) / 2) - std::lgamma(freedom / 2) -
         0.5 * std::log(freedom * std::numbers::pi * squaredScale) - (freedom + 1) / 2 * std::log1p(z2 / freedom);
}

}  // namespace

std::optional<Change> Narrator::tell(double before, double after, double confidence, std::int64_t sample) {
  const bool rise = after > before;
  if (!slow_ && !rise) return std::nullopt;
  Change change{ChangeKind::worsening, before, after, confidence, sample};
  if (!slow_) {
    change.kind = ChangeKind::onset;
    healthy_ = before;
    slow_ = true;
  } else if (!rise) {
    slow_ = after > healthy_ * (1 + threshold_);
    change.kind = slow_ ? ChangeKind::easing : ChangeKind::relief;
  }
  return change;
}

std::optional<Change> WindowDetector::add(double milliseconds) {
  window_.push_back(milliseconds);
  ++added_;
  if (window_.size() > 2 * windowSamples) window_.pop_front();
  if (window_.size() < 2 * windowSamples) return std::nullopt;
  const double before = mean(window_, 0, windowSamples), after = mean(window_, windowSamples, 2 * windowSamples);
  if (std::abs(after - before) < threshold_ * before) return std::nullopt;
  window_.erase(window_.begin(), window_.begin() + windowSamples);
  return narrator_.tell(before, after, 1, added_ - static_cast<std::int64_t>(windowSamples));
}

void BocdDetector::update(double value) {
  const double centre = runs_.empty() ? value : std::log(history_.front());
  const double changed = runs_.empty() ? 1 : hazard;
  for (Run& run : runs_) run.weight *= 1 - hazard;
  runs_.push_back({added_, changed, centre, priorCount, priorShape, priorScale});
  std::vector<double> densities;
  for (const Run& run : runs_)
    densities.push_back(std::log(run.weight) + studentLogDensity(value, run.mean,
                                                                 run.scale * (run.count + 1) / (run.shape * run.count),
                                                                 2 * run.shape));
  const double most = *std::max_element(densities.begin(), densities.end());
  double total = 0;
  for (std::size_t i = 0; i < runs_.size(); ++i) {
    Run& run = runs_[i];
    total += run.weight = std::exp(densities[i] - most);
    const double distance = value - run.mean;
    run.scale += run.count / (2 * (run.count + 1)) * distance * distance;
    run.mean += distance / (run.count + 1);
    run.count += 1;
    run.shape += 0.5;
  }
  for (Run& run : runs_) run.weight /= total;
  std::sort(runs_.begin(), runs_.end(), [](const Run& a, const Run& b) { return a.weight > b.weight; });
  if (runs_.size() > keptRuns) runs_.resize(keptRuns);
  while (runs_.back().weight < 1e-100) runs_.pop_back();
}

/// Of the samples first ... end - 1, as far as they are kept.
double BocdDetector::meanOf(std::int64_t first, std::int64_t end) const {
  const std::int64_t oldest = added_ - static_cast<std::int64_t>(history_.size());
  const auto at = [&](std::int64_t sample) { return std::max<std::int64_t>(sample - oldest, 0); };
  return mean(history_, at(first), at(end));
}

std::optional<Change> BocdDetector::add(double milliseconds) {
  if (!(milliseconds > 0) || !std::isfinite(milliseconds)) return std::nullopt;
  history_.push_back(milliseconds);
  if (history_.size() > keptSamples) history_.pop_front();
  update(std::log(milliseconds));
  ++added_;

  double probability = 0;
  std::int64_t start = runStart_;
  double most = 0;
  for (const Run& run : runs_) {
    if (run.start <= runStart_) continue;
    probability += run.weight;
    if (run.weight > most) {
      most = run.weight;
      start = run.start;
    }
  }
  if (probability < wantedProbability || added_ - start < 2) return std::nullopt;
  constexpr auto window = static_cast<std::int64_t>(windowSamples);
  const double before = meanOf(std::max(runStart_, start - window), start);
  const double after = meanOf(std::max(start, added_ - window), added_);
  runStart_ = start;
  if (verification_ == Verification::meanChange && std::abs(after - before) < threshold_ * before) return std::nullopt;
  return narrator_.tell(before, after, probability, start);
}

}  // namespace falcon::replay
