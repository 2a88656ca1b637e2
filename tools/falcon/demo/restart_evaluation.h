// Whether a job was restarted as it should be: from the newest checkpoint, with a spare in the slow one's place, once
// the loss had paid for it. Pure: from the trainer's stamps, what was said, and the places.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "demo/evaluation.h"

namespace falcon::demo {

/// An iteration as the trainer stamped it, with its number. Those of a restarted job follow in the same list.
struct NumberedIteration {
  std::uint64_t number = 0;
  double start = 0, end = 0;  ///< CLOCK_MONOTONIC seconds
  double loss = 0;
};
std::vector<NumberedIteration> parseNumberedLog(const std::string& text);

struct RestartRun {
  std::vector<NumberedIteration> iterations;
  std::vector<Said> said;
  std::vector<NumberedIteration> undisturbed;  ///< of a run of the same job in which nobody was slow
  Rank slow = -1;                              ///< whose place was made slow
  double slowSince = 0;
  std::string slowPlace, placeAfterwards;  ///< the slow rank's at first, and in the end
  int exitCode = -1;                       ///< of the launcher
};

struct RestartEvaluation {
  double healthy = 0, slow = 0, afterwards = 0, undisturbed = 0;  ///< median milliseconds of an iteration
  double lostSeconds = 0;                                         ///< by slowness, until the job ended to be restarted
  std::optional<double> priceSeconds;                             ///< as the planner said
  double stoodSeconds = 0;  ///< from the last iteration before the restart to the first one after
  std::optional<std::uint64_t> lastBefore, firstAfterwards;  ///< iterations
  double largestDifference = 0;                              ///< of a loss to the undisturbed run's, relative
  std::vector<std::string> missing;                          ///< all that keeps it from being right
  bool right() const { return missing.empty(); }
};
RestartEvaluation evaluate(const RestartRun& run);

nlohmann::json toJson(const RestartEvaluation& evaluation);
std::string toText(const RestartEvaluation& evaluation);

}  // namespace falcon::demo
