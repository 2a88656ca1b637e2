// A level that creeps: steps too small to be changes, which add up to one.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace falcon::instrument {

/// One-sided CUSUM against a level that does not move: grows while values lie beyond `reference`, shrinks to zero while
/// they do not. Values are cut, so that spikes count little. Used by one thread.
/// Source: Page, Continuous Inspection Schemes (1954).
class DriftSum {
 public:
  /// @param distance  of the value from the reference, in standard deviations; above 0 beyond it
  void add(double distance) {
    sum_ = std::max(0.0, sum_ + std::clamp(distance, -cut, cut));
    length_ = sum_ > 0 ? length_ + 1 : 0;
  }
  void clear() {
    sum_ = 0;
    length_ = 0;
  }
  bool raised() const { return sum_ > limit && length_ >= shortest; }
  /// Of a change against none, where one of 250 is expected.
  double probability() const { return 1 / (1 + 250 * std::exp(-sum_)); }
  /// Values since the sum was zero.
  std::int64_t length() const { return length_; }

 private:
  /// Deviations that a value counts at most, and the sum that raises. While the level lies half a deviation
  /// below the reference, a sum of 15 comes once in some million values.
  static constexpr double cut = 2, limit = 15;
  static constexpr std::int64_t shortest = 32;  // what is faster is a step, and judged as one

  double sum_ = 0;
  std::int64_t length_ = 0;
};

}  // namespace falcon::instrument
