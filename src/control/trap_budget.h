// How much of the run time automatic traps may take. Pure.
#pragma once

#include <algorithm>

#include "base/clock.h"

namespace falcon::control {

/// NCCL_FALCON_TRAP_BUDGET percent of the run time together; the first trap of a new onset is always allowed up to 5 s;
/// after an inconclusive one the next must wait, twice as long each time.
class TrapBudget {
 public:
  TrapBudget(double percent, Nanoseconds started) : percent_(percent), started_(started) {}

  bool allows(Nanoseconds now, bool firstOfOnset) const {
    if (now < notBefore_) return false;
    if (firstOfOnset) return true;
    return seconds(spent_) <= percent_ / 100 * seconds(now - started_);
  }
  /// The longest the next trap may take.
  Nanoseconds limit(Nanoseconds now, bool firstOfOnset, Nanoseconds timeout) const {
    const double left = percent_ / 100 * seconds(now - started_) - seconds(spent_);
    const Nanoseconds budget{static_cast<std::int64_t>(std::max(0.0, left) * 1e9)};
    return std::min(timeout, firstOfOnset ? std::max(budget, Nanoseconds(5s)) : budget);
  }
  void spent(Nanoseconds duration, bool conclusive, Nanoseconds now) {
    spent_ += duration;
    backOff_ = conclusive ? Nanoseconds(0) : std::max<Nanoseconds>(5s, 2 * backOff_);
    notBefore_ = now + backOff_;
  }

 private:
  double percent_;
  Nanoseconds started_;
  Nanoseconds spent_{0};
  Nanoseconds backOff_{0};
  Nanoseconds notBefore_{0};
};

}  // namespace falcon::control
