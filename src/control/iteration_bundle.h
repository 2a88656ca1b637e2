// Very short iterations, reported together.
#pragma once

#include <optional>

#include "base/clock.h"
#include "control/messages.h"

namespace falcon::control {

/// Judging a sample costs the controller the same however short the iteration was; so iterations shorter than
/// `shortest` are collected until they span it, and their mean is one sample. Longer ones pass as they are. Used by one
/// thread.
class IterationBundle {
 public:
  static constexpr Nanoseconds shortest = 20ms;

  /// A sample when one is complete: its index is the last iteration's. Iterations of another kind than those collected
  /// (micro-batches, disturbed, provisional, with or without work) start a new bundle; the unfinished one is dropped.
  std::optional<Sample> add(const Sample& iteration);
  void reset() { count_ = 0; }

 private:
  Sample sum_;
  int count_ = 0;
};

}  // namespace falcon::control
