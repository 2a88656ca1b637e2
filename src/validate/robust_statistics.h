// Centre and scatter that a few slow values do not move.
#pragma once

#include <cmath>
#include <vector>

#include "base/median.h"

namespace falcon::validate {

/// The standard deviation of a normal distribution by the median distance to its median.
inline constexpr double madToDeviation = 1.4826;

/// Standard deviation, from the median distance to the median. A handful of values may lie close together by chance, so
/// the scatter usually seen joins in as `priorWeight` values would.
inline double robustDeviation(const std::vector<double>& values, double prior, double priorWeight) {
  const double centre = median(values);
  std::vector<double> distances;
  for (const double value : values) distances.push_back(std::abs(value - centre));
  const double own = values.empty() ? 0 : madToDeviation * median(distances);
  const auto count = static_cast<double>(values.size());
  return std::sqrt((own * own * count + prior * prior * priorWeight) / (count + priorWeight));
}

}  // namespace falcon::validate
