// The iterations of a job with their numbers and losses, for those who compare two runs of the same job. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace falcon::demo {

/// An iteration as the trainer stamped it, with its number. Those of a restarted job follow in the same list.
struct NumberedIteration {
  std::uint64_t number = 0;
  double start = 0, end = 0;  ///< CLOCK_MONOTONIC seconds
  double loss = 0;
};
std::vector<NumberedIteration> parseNumberedLog(const std::string& text);

/// The median of how long they took; 0 without any.
double medianMilliseconds(std::span<const NumberedIteration> iterations);

/// The losses of a run beside those of one that nothing happened to.
struct LossComparison {
  std::size_t compared = 0;
  double largestDifference = 0;  ///< relative
};
LossComparison compareLosses(std::span<const NumberedIteration> run, std::span<const NumberedIteration> undisturbed);

/// So much longer an iteration may take, and is as fast as a healthy one.
inline constexpr double asFast = 1.25;
/// So much longer it has to take at least, else there was nothing to be seen.
inline constexpr double clearlySlow = 1.3;
/// Sums in another order, over a few hundred steps.
inline constexpr double sameLoss = 1e-3;
/// Iterations, for a median.
inline constexpr std::size_t enoughIterations = 10;

}  // namespace falcon::demo
