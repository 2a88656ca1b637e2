// Truth against what was said, injection by injection. Pure.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "demo/evaluation.h"

namespace falcon::injections {

/// What happened around one injection, from the end of the one before to its own. Times: CLOCK_MONOTONIC seconds.
struct Episode {
  std::vector<Culprit> truth;
  double started = 0;    ///< when the first of them was begun
  double effective = 0;  ///< when the last of them was confirmed to slow its victim; 0: nothing was injected
  double relieved = 0;   ///< when the last was undone
  std::vector<demo::Said> said;
  std::vector<double> iterationEnds;
};

/// One line of the table; nothing where it did not happen.
struct Row {
  std::string truth = "none";
  std::string verdict = "none";
  bool right = false;  ///< all of the truth was named, nobody else, and its relief was seen
  int innocent = 0;    ///< ranks and directions of links that were named and not injected
  bool reliefSeen = false;
  std::optional<int> delayIterations;
  std::optional<double> delaySeconds;
  std::optional<double> trapSeconds;  ///< all traps from the onset to the verdict
  std::optional<double> validationSeconds;
};

struct Summary {
  int count = 0;
  int right = 0;
  int innocent = 0;
  int injected = 0;  ///< of count: those that had a culprit
  int within15s = 0;
  /// All right, nobody innocent, and 95 % of those with a culprit named within 15 s of the onset.
  bool passed() const { return right == count && innocent == 0 && within15s >= 0.95 * injected; }
};

/// Whether every one of them was named, by what was said so far.
bool allNamed(const std::vector<Culprit>& truth, const std::vector<demo::Said>& said);
/// Whether what was said to be slow was said to have recovered since `relieved`.
bool allRelieved(const std::vector<demo::Said>& said, double relieved);

Row scoreOf(const Episode& episode);
Summary summaryOf(const std::vector<Row>& rows);

nlohmann::ordered_json toJson(const Row& row);
nlohmann::ordered_json toJson(const Summary& summary);
/// What toJson() made; throws nlohmann::json::exception on anything else.
Row rowFrom(const nlohmann::json& text);

std::string tableHead();
std::string tableLine(int number, const Row& row);

}  // namespace falcon::injections
