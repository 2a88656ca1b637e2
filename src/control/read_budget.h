// How many calls the monitor may look at, so that it stays cheap however fast the application calls.
#pragma once

#include <algorithm>
#include <cstddef>

#include "base/clock.h"

namespace falcon::control {

/// So many a second on average, saved up for bursts: an iteration may make all its calls at once. What goes beyond
/// waits in the call log, and is overwritten there when it waits too long. Used by one thread.
class ReadBudget {
 public:
  /// A call costs the monitor about a microsecond at most: 2 to 3 percent of a core.
  static constexpr double callsPerSecond = 25'000;
  static constexpr double burst = 16'384;

  /// Calls that may be read now.
  std::size_t allowed(Nanoseconds now) {
    saved_ = std::min(burst, saved_ + callsPerSecond * seconds(now - refilled_));
    refilled_ = now;
    return static_cast<std::size_t>(saved_);
  }
  void spent(std::size_t calls) { saved_ -= static_cast<double>(calls); }

 private:
  double saved_ = burst;
  Nanoseconds refilled_{0};
};

}  // namespace falcon::control
