// Truth against verdict, once the job has ended. Pure: from what was injected, what was said, and the trainer's stamps.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/event.h"
#include "inject/other_load.h"

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
  int severity = 0;  ///< 0: does not apply
  std::string action{};
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
  tools::OtherUses others;  ///< what other programs used of this machine meanwhile
};

std::vector<Iteration> parseTrainerLog(const std::string& text);
std::vector<Said> parseEvents(const std::string& text);

/// A relief may be seen, and the remedy undone, until this long after the injection's end.
inline constexpr double aftermathSeconds = 20;

/// One line of the table. Times in milliseconds, as legend() says; nothing where it did not happen.
struct Row {
  Truth truth;
  std::string verdict = "none";
  bool right = false;  ///< the verdict
  std::optional<int> iterationsToDetection;
  std::optional<double> trapSeconds;
  double healthy = 0;
  double slow = 0;
  std::optional<double> mitigated;
  std::optional<double> recovered;  ///< share of the slowdown
  std::string action;
  bool reliefSeen = false;           ///< after the injection's end
  bool undone = false;               ///< after the relief
  std::vector<std::string> missing;  ///< of effect, verdict, remedy, relief and undoing; a sentence each
};
struct Evaluation {
  std::vector<Row> rows;
  std::vector<std::string> falseAlarms;  ///< said outside of every injection
  /// Said of other programs on this machine, which were there by our own account as well: right, and no alarm.
  std::vector<std::string> ofOthers;
  double throughputWith = 0;  ///< iterations a second
  double throughputWithout = 0;
  double iterationMilliseconds = 0;  ///< median of the run with Falcon
  std::vector<std::string> missing;  ///< all that keeps it from being right: of every row, and false alarms
  bool right = false;                ///< nothing is missing
};

/// Right is what names every injection and nothing else, works around it while it lasts, sees its end and then undoes
/// what it did. `without` is the run with NCCL_FALCON=0 and the same injections; empty for a healthy run.
/// What is said of other programs on this machine is right where `with.others` has them too.
Evaluation evaluate(const Run& with, const Run& without);

/// How the table's numbers are computed: which run, which iterations. A line each, "slow: ...".
std::vector<std::string> legend();

/// The whole in one sentence: right, or all that is missing.
std::string conclusion(const Evaluation& evaluation);

nlohmann::json toJson(const Evaluation& evaluation);
/// The table for people.
std::string toText(const Evaluation& evaluation);
std::vector<std::string> tableHead();
std::vector<std::vector<std::string>> tableRows(const Evaluation& evaluation);

}  // namespace falcon::demo
