// Evaluation, logging, checkpoints: what a job does every k iterations, told apart from the end of an inner loop.
#pragma once

#include <cstddef>

#include "base/clock.h"

namespace falcon::instrument {

/// A pattern that repeats, and a longer one around it: `repeats` times the inner one, then something that comes once.
struct NestedPattern {
  std::size_t repeats = 0;
  double innerBytes = 0, onceBytes = 0;
  std::size_t innerKinds = 0;       ///< different calls in one repeat
  bool innerHasCollective = false;  ///< else sends and receives only
  Nanoseconds innerTime{0};         ///< of one repeat
};

/// Whether the inner pattern is the iteration, and what comes once a step that belongs to every so-many-th of them.
/// From the calls alone both look the same: (A,B) x 64 and a marker is a loop over micro-batches, (A,B,C) x 10 and a
/// marker an iteration and its log. What tells them apart is how people choose the numbers, and what the calls carry:
///  - intervals are multiples of five from ten on (10, 50, 100, 500); micro-batches and layers mostly are not;
///  - an iteration has a collective, however it is cut into micro-batches;
///  - the end of an iteration sums gradients, as many bytes as a micro-batch or more; a log or the metrics of an
///    evaluation are less than an iteration carries;
///  - a loop over layers is short and of one or two calls.
/// In doubt the longer pattern is the iteration: a longer one found late costs detection time, a part of an iteration
/// taken for all of it would cost a false alarm.
constexpr bool isOccasionalStep(const NestedPattern& pattern) {
  constexpr Nanoseconds longerThanALayer = 20ms;
  return pattern.repeats >= 10 && pattern.repeats % 5 == 0 && pattern.innerHasCollective &&
         pattern.onceBytes < pattern.innerBytes && (pattern.innerKinds >= 3 || pattern.innerTime >= longerThanALayer);
}

}  // namespace falcon::instrument
