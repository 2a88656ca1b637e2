// Whether ranks exchanged their roles as they should where a slow link could not be avoided otherwise: once the loss
// had paid for it, with their state, and back when the link was healthy again. Pure: from the trainer's stamps and what
// was said.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "demo/evaluation.h"
#include "demo/numbered_iterations.h"

namespace falcon::demo {

struct SwapRun {
  std::vector<NumberedIteration> iterations, undisturbed;
  std::vector<Said> said;
  Culprit slow;                         ///< the link that was slowed
  double slowSince = 0, slowUntil = 0;  ///< CLOCK_MONOTONIC seconds; until 0: to the end
  int exitCode = -1;                    ///< of the launcher
};

struct SwapEvaluation {
  double healthy = 0, slow = 0, swapped = 0, afterwards = 0;  ///< median milliseconds of an iteration
  std::optional<double> namedAfter, swappedAfter;             ///< seconds since the link became slow
  std::optional<double> undoneAfter;                          ///< seconds since it was healthy again
  std::string change;                                         ///< what was said of the exchange
  double largestDifference = 0;                               ///< of a loss to the undisturbed run's, relative
  std::vector<std::string> missing;                           ///< all that keeps it from being right
  bool right() const { return missing.empty(); }
};
SwapEvaluation evaluate(const SwapRun& run);

nlohmann::json toJson(const SwapEvaluation& evaluation);
std::string toText(const SwapEvaluation& evaluation);

}  // namespace falcon::demo
