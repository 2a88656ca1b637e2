// Centre and scatter that a few slow values do not move.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

namespace falcon::validate {

/// The middle value, or the mean of the two in the middle; NaN of nothing.
inline double median(std::vector<double> values) {
  if (values.empty()) return std::nan("");
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

/// Standard deviation, from the median distance to the median. A handful of values may lie close together by chance, so
/// the scatter usually seen joins in as `priorWeight` values would.
inline double robustDeviation(const std::vector<double>& values, double prior, double priorWeight) {
  const double centre = median(values);
  std::vector<double> distances;
  for (const double value : values) distances.push_back(std::abs(value - centre));
  const double own = values.empty() ? 0 : 1.4826 * median(distances);
  const auto count = static_cast<double>(values.size());
  return std::sqrt((own * own * count + prior * prior * priorWeight) / (count + priorWeight));
}

}  // namespace falcon::validate
