// When it is worth while to look closer: pure.
#pragma once

#include "base/call.h"
#include "instrument/change_point.h"
#include "instrument/period_finder.h"

namespace falcon::profiler {

/// Profiles a few iterations once the period is known, as the healthy ones, and a few after each change for the worse.
/// Used by one thread.
class IterationWatch {
 public:
  /// So many iterations are profiled each time.
  static constexpr int profiledIterations = 8;

  /// The next call of the log.
  void add(const CallRecord& call) {
    for (const instrument::IterationSample& sample : period_.add(call)) add(sample);
  }
  void overrun(std::uint64_t lost) { period_.overrun(lost); }

  bool profiles() const { return left_ > 0; }
  /// An onset, or worse, that has not ended.
  bool slow() const { return detector_.slow(); }
  std::uint64_t iterations() const { return iterations_; }
  Nanoseconds lastDuration() const { return last_; }

 private:
  void add(const instrument::IterationSample& sample) {
    ++iterations_;
    last_ = sample.duration;
    if (left_ > 0) --left_;
    if (sample.provisional) return;
    if (!settled_) {
      settled_ = true;
      left_ = profiledIterations;
    }
    const auto change = detector_.add(seconds(sample.duration) * 1e3);
    if (change && (change->kind == instrument::ChangeKind::onset || change->kind == instrument::ChangeKind::worsening))
      left_ = profiledIterations;
  }

  instrument::PeriodFinder period_;
  instrument::ChangePointDetector detector_;
  std::uint64_t iterations_ = 0;
  Nanoseconds last_{0};
  bool settled_ = false;
  int left_ = 0;
};

}  // namespace falcon::profiler
