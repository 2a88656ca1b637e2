// Truth against verdict, once the job has ended. Pure: from what was injected, what was said, and the trainer's stamps.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/event.h"

namespace falcon::demo {

/// The trainer's own stamps of one iteration, CLOCK_MONOTONIC seconds.
struct Iteration {
  double start = 0;
  double end = 0;
  double loss = 0;
};
/// One line of events.jsonl, as far as the evaluation needs it.
struct Said {
  std::string kind;
  double time = 0;  ///< CLOCK_MONOTONIC seconds
  Culprit culprit;
  double duration = 0;
  std::string text;
};
/// What was really done to the job, as the injecting process measured it.
struct Truth {
  Culprit culprit;
  double started = 0;
  double ended = 0;
  bool effective = false;
  std::string remark;
};

struct Run {
  std::vector<Iteration> iterations;
  std::vector<Truth> truths;
  std::vector<Said> said;
};

std::vector<Iteration> parseTrainerLog(const std::string& text);
std::vector<Said> parseEvents(const std::string& text);

/// One line of the table. Times in milliseconds; nothing where it did not happen.
struct Row {
  Truth truth;
  std::string verdict = "none";
  bool right = false;
  std::optional<int> iterationsToDetection;
  std::optional<double> trapSeconds;
  double healthy = 0;
  double slow = 0;  ///< in the run without Falcon, same injection
  std::optional<double> mitigated;
  std::optional<double> recovered;  ///< share of the slowdown
  std::string action;
  bool reliefSeen = false;
  bool undone = false;
};
struct Evaluation {
  std::vector<Row> rows;
  std::vector<std::string> falseAlarms;  ///< said outside of every injection
  double throughputWith = 0;             ///< iterations a second
  double throughputWithout = 0;
  double iterationMilliseconds = 0;  ///< median of the run with Falcon
  bool right = false;                ///< every verdict right and nothing said beside
};

/// `without` is the run with NCCL_FALCON=0 and the same injections; empty for a healthy run.
Evaluation evaluate(const Run& with, const Run& without);

nlohmann::json toJson(const Evaluation& evaluation);
/// The table for people.
std::string toText(const Evaluation& evaluation);
std::vector<std::string> tableHead();
std::vector<std::vector<std::string>> tableRows(const Evaluation& evaluation);

}  // namespace falcon::demo
