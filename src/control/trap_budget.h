// How much of the run time automatic traps may take. Pure.
#pragma once

#include <algorithm>

#include "base/clock.h"

namespace falcon::control {

/// NCCL_FALCON_TRAP_BUDGET percent of the run time together; the first trap of a new onset is allowed up to 5 s even
/// so.
class TrapBudget {
 public:
  TrapBudget(double percent, Nanoseconds started) : percent_(percent), started_(started) {}

  bool allows(Nanoseconds now, bool firstOfOnset) const { return firstOfOnset || left(now) >= shortest; }
  /// The longest the next trap may take.
  Nanoseconds limit(Nanoseconds now, bool firstOfOnset, Nanoseconds timeout) const {
    return std::min(timeout, firstOfOnset ? std::max(left(now), firstTrap) : left(now));
  }
  void spent(Nanoseconds duration) { spent_ += duration; }
  double percent() const { return percent_; }

 private:
  static constexpr Nanoseconds firstTrap = 5s;
  /// A compute test and the way in need this long: a shorter trap would hold the job for nothing.
  static constexpr Nanoseconds shortest = 1s;

  Nanoseconds left(Nanoseconds now) const {
    const double seconds = percent_ / 100 * falcon::seconds(now - started_) - falcon::seconds(spent_);
    return fromSeconds(std::max(0.0, seconds));
  }

  double percent_;
  Nanoseconds started_;
  Nanoseconds spent_{0};
};

}  // namespace falcon::control
