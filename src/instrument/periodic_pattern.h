// Healthy iterations that take turns: every second one longer, every fourth one shorter.
#pragma once

#include <cstdint>
#include <vector>

namespace falcon::instrument {

/// A pattern that repeats every 2 to 12 iterations, and what it adds to each: offsets whose median is nothing.
struct PeriodicPattern {
  std::vector<double> offsets;  ///< empty: no pattern

  bool operator==(const PeriodicPattern&) const = default;
  double at(std::int64_t iteration) const {
    return offsets.empty() ? 0 : offsets[static_cast<std::size_t>(iteration) % offsets.size()];
  }
};

/// The pattern in logarithms of durations, where one explains at least two thirds of the scatter. Steps and spikes do
/// no harm.
/// @param values   consecutive; fewer than eight repeats show no pattern
/// @param first    number of the first
/// @param present  the pattern found before, if any: it is kept as long as it explains half of the scatter
PeriodicPattern findPattern(const std::vector<double>& values, std::int64_t first, const PeriodicPattern& present);

}  // namespace falcon::instrument
