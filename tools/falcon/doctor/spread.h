// How much repeated measurements differ. Pure.
#pragma once

#include <cmath>
#include <limits>
#include <vector>

namespace falcon::doctor {

/// Standard deviation over mean; NaN of fewer than two values.
inline double variation(const std::vector<double>& values) {
  if (values.size() < 2) return std::numeric_limits<double>::quiet_NaN();
  double mean = 0, squares = 0;
  for (const double value : values) mean += value / static_cast<double>(values.size());
  for (const double value : values) squares += (value - mean) * (value - mean);
  return std::sqrt(squares / static_cast<double>(values.size() - 1)) / mean;
}

}  // namespace falcon::doctor
