// The middle of some values, and their mean.
#pragma once

#include <algorithm>
#include <limits>
#include <vector>

namespace falcon {

/// The middle value, or the mean of the two in the middle; `ofNothing` of nothing.
inline double median(std::vector<double> values, double ofNothing = std::numeric_limits<double>::quiet_NaN()) {
  if (values.empty()) return ofNothing;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

/// The sum by the number; `ofNothing` of nothing.
inline double mean(const std::vector<double>& values, double ofNothing = std::numeric_limits<double>::quiet_NaN()) {
  if (values.empty()) return ofNothing;
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

/// The middle value, the lower of the two in the middle where there are two; `ofNothing` of nothing.
inline double lowerMedian(std::vector<double> values, double ofNothing) {
  if (values.empty()) return ofNothing;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace falcon
