// Centre and scatter that a few slow values do not move.
#pragma once

#include <algorithm>
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

/// Where the values fall into two halves, whose middle ones lie further apart than four times `scatter`: the lower
/// half; else all. Values are larger where slower, and nobody is faster than healthy. `values`: sorted.
inline std::vector<double> healthyOf(std::vector<double> values, double scatter) {
  constexpr double apart = 4;
  const std::size_t half = values.size() / 2;
  if (values.size() % 2 == 0 && half > 0 && values[half] - values[half - 1] > apart * scatter) values.resize(half);
  return values;
}

}  // namespace falcon::validate
