#include "instrument/periodic_pattern.h"

#include <cmath>

#include "base/median.h"

namespace falcon::instrument {
namespace {

constexpr std::size_t longestPeriod = 12, leastRepeats = 8;
/// Two differences of iterations that are one period apart may be so much of those of neighbours.
constexpr double explains = 1.0 / 3, stillExplains = 0.5;

double medianDifference(const std::vector<double>& values, std::size_t lag) {
  std::vector<double> differences;
  differences.reserve(values.size());
  for (std::size_t i = lag; i < values.size(); ++i) differences.push_back(std::abs(values[i] - values[i - lag]));
  return median(std::move(differences), 0);
}

/// The mean absolute difference, largest twentieth left out: sees the rare slow turn of a long period, which a median
/// hides.
double trimmedDifference(const std::vector<double>& values, std::size_t lag) {
  std::vector<double> differences;
  differences.reserve(values.size());
  for (std::size_t i = lag; i < values.size(); ++i) differences.push_back(std::abs(values[i] - values[i - lag]));
  const std::size_t kept = differences.size() * 19 / 20;
  if (kept == 0) return 0;
  std::nth_element(differences.begin(), differences.begin() + static_cast<std::ptrdiff_t>(kept), differences.end());
  double sum = 0;
  for (std::size_t i = 0; i < kept; ++i) sum += differences[i];
  return sum / static_cast<double>(kept);
}

/// Medians, by turn, of the distance to the mean of the period around.
std::vector<double> offsetsOf(const std::vector<double>& values, std::size_t period, std::int64_t first) {
  std::vector<std::vector<double>> byTurn(period);
  for (std::size_t i = 0; i + period <= values.size(); ++i) {
    double mean = 0;
    for (std::size_t k = i; k < i + period; ++k) mean += values[k] / static_cast<double>(period);
    const std::size_t middle = i + period / 2;
    byTurn[(static_cast<std::size_t>(first) + middle) % period].push_back(values[middle] - mean);
  }
  std::vector<double> offsets;
  for (auto& turn : byTurn) offsets.push_back(median(std::move(turn), 0));
  const double middle = median(offsets);
  for (double& offset : offsets) offset -= middle;
  return offsets;
}

}  // namespace

PeriodicPattern findPattern(const std::vector<double>& values, std::int64_t first, const PeriodicPattern& present) {
  if (values.size() < 2 * leastRepeats) return {};
  const double usual = trimmedDifference(values, 1);
  for (std::size_t period = 2; period <= longestPeriod && leastRepeats * period <= values.size(); ++period)
    if (trimmedDifference(values, period) < (period == present.offsets.size() ? stillExplains : explains) * usual &&
        medianDifference(values, period) <= medianDifference(values, 1))
      return {offsetsOf(values, period, first)};
  return {};
}

}  // namespace falcon::instrument
