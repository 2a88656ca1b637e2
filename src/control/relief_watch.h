// Tells when a mitigated slow rank is healthy again, from its own figure: the job's iteration time no longer shows it.
#pragma once

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>

namespace falcon::control {

/// What a slow rank's relief is told by, in iterations. A rank that was relieved of work runs in short bursts, and a
/// quota lets some of them pass as healthy.
inline constexpr int healthySamplesForRelief = 6;

/// Pure. The figure is "lower is better": computing time a micro-batch against the baseline and the peers.
/// A value counts as healthy when it lies nearer to the healthy level than to the slow one, on a logarithmic scale, and
/// not above `mostHealthy`: what was slow by much may have become slow by less.
class ReliefWatch {
 public:
  /// `needed` healthy values in a row-but-one are asked for.
  ReliefWatch(double healthy, double slow, int needed, double mostHealthy = std::numeric_limits<double>::infinity())
      : border_(std::min(std::sqrt(healthy * slow), mostHealthy)),
        needed_(needed),
        meaningful_(slow > healthy * 1.05) {}

  /// True when the newest values say that the culprit is healthy. False for ever when slow and healthy were the same.
  bool add(double value) {
    recent_.push_back(value < border_);
    if (static_cast<int>(recent_.size()) > needed_ + 1) recent_.pop_front();
    int healthy = 0;
    for (const bool each : recent_) healthy += each;
    return meaningful_ && healthy >= needed_ && recent_.back();
  }

 private:
  double border_;
  int needed_;
  bool meaningful_;
  std::deque<bool> recent_;
};

}  // namespace falcon::control
