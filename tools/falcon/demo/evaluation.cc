#include "demo/evaluation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <sstream>
#include <string_view>
#include <utility>

#include "base/median.h"
#include "json_text.h"

namespace falcon::demo {
namespace {

using json = nlohmann::json;

constexpr double calmSeconds = 15;  // before an injection: what is healthy

std::optional<double> medianBetween(const Run& run, double from, double to) {
  std::vector<double> durations;
  for (const Iteration& iteration : run.iterations)
    if (iteration.start >= from && iteration.end <= to) durations.push_back((iteration.end - iteration.start) * 1e3);
  if (durations.empty()) return std::nullopt;
  return median(std::move(durations));
}

double throughput(const Run& run) {
  if (run.iterations.size() < 2) return 0;
  return static_cast<double>(run.iterations.size()) / (run.iterations.back().end - run.iterations.front().start);
}

bool sameLink(const Culprit& said, const Culprit& truth) {
  if (truth.bothWays != said.bothWays) return false;
  if (said.link == truth.link) return true;
  return truth.bothWays && said.link == Link{truth.link.to, truth.link.from};
}

bool isRight(const Culprit& said, const Culprit& truth) {
  if (said.kind != truth.kind) return false;
  return said.kind == CulpritKind::rank ? said.rank == truth.rank : sameLink(said, truth);
}

// What Falcon may not say outside of an injection.
bool isAlarm(const std::string& kind) {
  return kind == "onset" || kind == "worsening" || kind == "suspicion" || kind == "trap-closed" || kind == "verdict" ||
         kind == "mitigation-applied" || kind == "mitigation-advised" || kind == "inconclusive";
}

bool isDuring(const Said& said, const std::vector<Truth>& truths) {
  return std::any_of(truths.begin(), truths.end(), [&](const Truth& truth) {
    return said.time >= truth.started && said.time <= truth.ended + aftermathSeconds;
  });
}

/// What is true of other programs is kept apart: it is said of no injection.
Run withoutOthers(const Run& run, std::vector<std::string>& ofOthers) {
  double healthyUntil = 0;
  for (const Said& said : run.said)
    if (said.kind == "baseline-taken" && healthyUntil == 0) healthyUntil = said.time;
  Run rest = run;
  std::erase_if(rest.said, [&](const Said& said) {
    if (said.culprit.kind != CulpritKind::host && isDuring(said, run.truths)) return false;
    if (!tools::isOfOtherPrograms(said.kind, said.culprit, said.time, run.others, healthyUntil)) return false;
    if (isAlarm(said.kind)) ofOthers.push_back(fmt::format("{}: {}", said.kind, said.text));
    return true;
  });
  return rest;
}

/// What was said of one injection. Times are 0 where it was not.
struct Story {
  std::vector<Culprit> named;
  double remedyAt = 0;  ///< against the culprit, named before, while it was slow
  double undoneAt = 0;
  bool relievedTooEarly = false;
};

Story follow(const Run& with, double until, Row& row) {
  const Truth& truth = row.truth;
  Story story;
  bool nameKnown = false;
  for (const Said& said : with.said) {
    if (said.time < truth.started || said.time > until) continue;
    if (said.kind == "onset" && !row.iterationsToDetection) {
      row.iterationsToDetection =
          static_cast<int>(std::count_if(with.iterations.begin(), with.iterations.end(), [&](const Iteration& i) {
            return i.end > truth.started && i.end <= said.time;
          }));
    }
    if (said.kind == "trap-opened" || said.kind == "trap-timed-out")
      row.trapSeconds = row.trapSeconds.value_or(0) + said.duration;
    if (said.kind == "verdict") story.named.push_back(said.culprit);
    if (said.kind == "mitigation-applied" && row.action.empty()) row.action = said.text;

    if (!isRight(said.culprit, truth.culprit)) continue;
    if (said.kind == "verdict") nameKnown = true;
    if (said.kind == "mitigation-applied") {
      if (nameKnown && story.remedyAt == 0 && said.time < truth.ended) story.remedyAt = said.time;
      row.undone = false;
    }
    if (said.kind == "relief") (said.time >= truth.ended ? row.reliefSeen : story.relievedTooEarly) = true;
    if (said.kind == "mitigation-undone" && row.reliefSeen) {
      row.undone = true;
      story.undoneAt = said.time;
    }
  }
  return story;
}

std::vector<std::string> missingIn(const Row& row, const Story& story) {
  std::vector<std::string> missing;
  if (!row.truth.effective) missing.push_back("the injection had no effect");
  if (story.named.empty())
    missing.push_back("there was no verdict");
  else if (story.named.size() > 1)
    missing.push_back("not it alone was named: " + row.verdict);
  else if (!row.right)
    missing.push_back("the verdict was " + row.verdict);
  if (story.remedyAt == 0) missing.push_back("no remedy was applied while it was slow");
  if (story.relievedTooEarly)
    missing.push_back("relief was said while it was slow");
  else if (!row.reliefSeen)
    missing.push_back("relief was not seen");
  else if (story.remedyAt > 0 && !row.undone)
    missing.push_back("the remedy was not undone after the relief");
  return missing;
}

/// Where to look for one injection: its own and its twin's in the run without Falcon, each with the time since when
/// its run has been calm.
struct Window {
  double calmSince = 0;
  double until = 0;
  const Truth* twin = nullptr;  ///< none: not comparable
  double twinCalmSince = 0;
};

// The two runs are never equally fast: what is compared is how much slower each became.
double slowdown(const Run& without, const Window& window) {
  if (!window.twin || !window.twin->effective) return 0;
  const Truth& twin = *window.twin;
  const auto calm = medianBetween(without, std::max(twin.started - calmSeconds, window.twinCalmSince), twin.started);
  const auto slow = medianBetween(without, twin.started, twin.ended);
  return calm && slow && *calm > 0 ? *slow / *calm : 0;
}

/// @return the row, and since when the job is as it was before the injection
std::pair<Row, double> evaluateOne(const Truth& truth, const Run& with, const Run& without, const Window& window) {
  Row row{.truth = truth};
  const Story story = follow(with, window.until, row);
  for (size_t i = 0; i < story.named.size(); ++i)
    row.verdict = i == 0 ? nameOf(story.named[i]) : row.verdict + " and " + nameOf(story.named[i]);
  row.right = story.named.size() == 1 && isRight(story.named.front(), truth.culprit);
  row.missing = missingIn(row, story);

  row.healthy = medianBetween(with, std::max(truth.started - calmSeconds, window.calmSince), truth.started).value_or(0);
  row.slow = row.healthy * slowdown(without, window);
  if (story.remedyAt > 0) {
    row.mitigated = medianBetween(with, story.remedyAt, truth.ended);
    const double lost = row.slow - row.healthy;
    if (row.mitigated && lost > 0) row.recovered = (row.slow - *row.mitigated) / lost;
  }
  return {row, std::max(truth.ended, story.undoneAt)};
}

std::string milliseconds(std::optional<double> value) {
  return value && *value > 0 ? fmt::format("{:.0f} ms", *value) : "-";
}

}  // namespace

std::vector<Iteration> parseTrainerLog(const std::string& text) {
  std::vector<Iteration> iterations;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const json entry = json::parse(line, nullptr, false);
    if (entry.is_object() && entry.contains("start") && entry.contains("end"))
      iterations.push_back({entry["start"], entry["end"], entry.value("loss", 0.0)});
  }
  return iterations;
}

std::vector<Said> parseEvents(const std::string& text) {
  std::vector<Said> said;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const json entry = json::parse(line, nullptr, false);
    if (!entry.is_object()) continue;
    Said one{entry.value("kind", ""),        entry.value("time_s", 0.0), {},
             entry.value("duration_s", 0.0), entry.value("text", ""),    entry.value("severity", 0),
             entry.value("action", "")};
    if (entry.contains("culprit")) {
      const json& culprit = entry["culprit"];
      const std::string kind = culprit.value("kind", "");
      one.culprit.kind = kind == "rank" ? CulpritKind::rank : kind == "host" ? CulpritKind::host : CulpritKind::link;
      one.culprit.host = culprit.value("host", "");
      one.culprit.rank = culprit.value("rank", -1);
      one.culprit.link = {culprit.value("from", -1), culprit.value("to", -1)};
      one.culprit.bothWays = culprit.value("both_ways", false);
    }
    said.push_back(std::move(one));
  }
  return said;
}

Evaluation evaluate(const Run& whole, const Run& without) {
  Evaluation evaluation;
  const Run with = withoutOthers(whole, evaluation.ofOthers);
  evaluation.throughputWith = throughput(with);
  evaluation.throughputWithout = throughput(without);
  if (!with.iterations.empty())
    evaluation.iterationMilliseconds =
        medianBetween(with, with.iterations.front().start, with.iterations.back().end).value_or(0);
  double calmSince = 0;
  for (size_t i = 0; i < with.truths.size(); ++i) {
    const Truth& truth = with.truths[i];
    Window window{.calmSince = calmSince, .until = truth.ended + aftermathSeconds};
    // One that could not be injected has no times.
    if (i + 1 < with.truths.size() && with.truths[i + 1].started > 0)
      window.until = std::min(window.until, with.truths[i + 1].started);
    if (i < without.truths.size()) window.twin = &without.truths[i];
    if (window.twin && i > 0) window.twinCalmSince = without.truths[i - 1].ended;
    auto [row, calmAgain] = evaluateOne(truth, with, without, window);
    calmSince = calmAgain;
    for (const std::string& missing : row.missing) evaluation.missing.push_back(nameOf(truth.culprit) + ": " + missing);
    evaluation.rows.push_back(std::move(row));
  }
  for (const Said& said : with.said) {
    if (!isAlarm(said.kind)) continue;
    if (isDuring(said, with.truths)) continue;
    evaluation.falseAlarms.push_back(fmt::format("{}: {}", said.kind, said.text));
    evaluation.missing.push_back("false alarm, " + evaluation.falseAlarms.back());
  }
  if (with.iterations.empty()) evaluation.missing.push_back("the job with Falcon did not train");
  if (std::none_of(with.said.begin(), with.said.end(), [](const Said& said) { return said.kind == "baseline-taken"; }))
    evaluation.missing.push_back("Falcon never learnt what is healthy: its silence says nothing");
  evaluation.right = evaluation.missing.empty();
  return evaluation;
}

std::vector<std::string> legend() {
  constexpr std::string_view medians =
      "healthy, slow and mitigated are medians of the iterations that lie wholly in that time, as the trainer stamped "
      "them";
  return {
      fmt::format("healthy: with Falcon, the {:.0f} s before the injection, without what is left of the one before",
                  calmSeconds),
      fmt::format("slow: without Falcon, during the same injection; times healthy with by healthy without Falcon (the "
                  "{:.0f} s before), as no two runs are equally fast",
                  calmSeconds),
      "mitigated: with Falcon, from the remedy to the injection's end",
      std::string(medians),
      "recovered: (slow - mitigated) / (slow - healthy)",
      "detected after: iterations from the injection to the onset; trap: how long the job was held, all in all",
      fmt::format("relief: seen after the injection's end; undone: after that; both within {:.0f} s of the end",
                  aftermathSeconds),
      "throughput: the iterations of a whole run by its length",
  };
}

std::string conclusion(const Evaluation& evaluation) {
  if (evaluation.right) {
    const std::string others = evaluation.ofOthers.empty()
                                   ? std::string()
                                   : "; other programs used this machine meanwhile, and that was said as well";
    return (evaluation.rows.empty() ? "nothing was reported: right"
                                    : "every injection was named, worked around, seen to end, and the remedy undone") +
           others;
  }
  std::string text;
  for (const std::string& missing : evaluation.missing) text += (text.empty() ? "NOT RIGHT: " : "; ") + missing;
  return text;
}

json toJson(const Evaluation& evaluation) {
  const auto orNull = [](const auto& value) { return tools::orNull<json>(value); };
  json rows = json::array();
  for (const Row& row : evaluation.rows) {
    rows.push_back({{"truth", nameOf(row.truth.culprit)},
                    {"verdict", row.verdict},
                    {"right", row.right},
                    {"effective", row.truth.effective},
                    {"iterations_to_detection", orNull(row.iterationsToDetection)},
                    {"trap_s", orNull(row.trapSeconds)},
                    {"healthy_ms", row.healthy},
                    {"slow_ms", row.slow},
                    {"mitigated_ms", orNull(row.mitigated)},
                    {"recovered", orNull(row.recovered)},
                    {"action", row.action},
                    {"relief_seen", row.reliefSeen},
                    {"undone", row.undone},
                    {"missing", row.missing}});
  }
  return {{"injections", rows},
          {"false_alarms", evaluation.falseAlarms},
          {"of_other_programs", evaluation.ofOthers},
          {"iteration_ms", evaluation.iterationMilliseconds},
          {"throughput_with", evaluation.throughputWith},
          {"throughput_without", evaluation.throughputWithout},
          {"legend", legend()},
          {"missing", evaluation.missing},
          {"right", evaluation.right}};
}

std::vector<std::string> tableHead() {
  return {"truth", "verdict",   "right",     "detected after", "trap",  "healthy",
          "slow",  "mitigated", "recovered", "relief",         "undone"};
}

std::vector<std::vector<std::string>> tableRows(const Evaluation& evaluation) {
  std::vector<std::vector<std::string>> rows;
  for (const Row& row : evaluation.rows) {
    rows.push_back({nameOf(row.truth.culprit), row.verdict, row.right ? "yes" : "NO",
                    row.iterationsToDetection ? fmt::format("{} iterations", *row.iterationsToDetection) : "never",
                    row.trapSeconds ? fmt::format("{:.1f} s", *row.trapSeconds) : "-", milliseconds(row.healthy),
                    milliseconds(row.slow), milliseconds(row.mitigated),
                    row.recovered ? fmt::format("{:.0f} %", *row.recovered * 100) : "-",
                    row.reliefSeen ? "seen" : "NOT SEEN", row.undone ? "yes" : "NO"});
  }
  return rows;
}

std::string toText(const Evaluation& evaluation) {
  std::vector<std::vector<std::string>> lines = tableRows(evaluation);
  lines.insert(lines.begin(), tableHead());
  std::vector<size_t> widths(lines.front().size(), 0);
  for (const auto& line : lines)
    for (size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], line[i].size());
  std::string text;
  for (const auto& line : lines) {
    for (size_t i = 0; i < line.size(); ++i) text += fmt::format("{:<{}}  ", line[i], widths[i]);
    text += '\n';
  }
  if (evaluation.rows.empty())
    text = fmt::format("healthy run, {:.0f} ms an iteration\n", evaluation.iterationMilliseconds);
  else
    for (const std::string& line : legend()) text += "  " + line + '\n';
  for (const Row& row : evaluation.rows) {
    if (!row.action.empty()) text += fmt::format("{}: {}\n", nameOf(row.truth.culprit), row.action);
    for (const std::string& missing : row.missing)
      text += fmt::format("{}: MISSING: {}\n", nameOf(row.truth.culprit), missing);
  }
  for (const std::string& said : evaluation.ofOthers)
    text += "of other programs, as /proc/stat has it too: " + said + '\n';
  for (const std::string& alarm : evaluation.falseAlarms) text += "FALSE ALARM " + alarm + '\n';
  if (evaluation.throughputWithout > 0)
    text += fmt::format("throughput: {:.3f} iterations/s with Falcon, {:.3f} without ({:+.0f} %)\n",
                        evaluation.throughputWith, evaluation.throughputWithout,
                        (evaluation.throughputWith / evaluation.throughputWithout - 1) * 100);
  return text;
}

}  // namespace falcon::demo
