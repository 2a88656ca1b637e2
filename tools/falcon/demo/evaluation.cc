#include "demo/evaluation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <sstream>

namespace falcon::demo {
namespace {

using json = nlohmann::json;

// A relief may be seen, and the remedy undone, until this long after the injection's end.
constexpr double aftermathSeconds = 20;

std::optional<double> medianBetween(const Run& run, double from, double to) {
  std::vector<double> durations;
  for (const Iteration& iteration : run.iterations)
    if (iteration.start >= from && iteration.end <= to) durations.push_back((iteration.end - iteration.start) * 1e3);
  if (durations.empty()) return std::nullopt;
  std::nth_element(durations.begin(), durations.begin() + static_cast<std::ptrdiff_t>(durations.size() / 2),
                   durations.end());
  return durations[durations.size() / 2];
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

Row evaluateOne(const Truth& truth, const Run& with, const Run& without, const Truth* twin, double until) {
  Row row{.truth = truth};
  const double calmFrom = truth.started - 15;
  row.healthy = medianBetween(with, calmFrom, truth.started).value_or(0);
  if (twin) {
    row.slow = medianBetween(without, twin->started, twin->ended).value_or(0);
    const auto calm = medianBetween(without, twin->started - 15, twin->started);
    // The two runs are never equally fast: what is compared is how much slower each became.
    if (calm && *calm > 0) row.slow *= row.healthy / *calm;
  }
  std::vector<Culprit> named;
  double appliedAt = 0;
  for (const Said& said : with.said) {
    if (said.time < truth.started || said.time > until) continue;
    if (said.kind == "onset" && !row.iterationsToDetection) {
      row.iterationsToDetection =
          static_cast<int>(std::count_if(with.iterations.begin(), with.iterations.end(), [&](const Iteration& i) {
            return i.end > truth.started && i.end <= said.time;
          }));
    }
    if ((said.kind == "trap-opened" || said.kind == "trap-timed-out") && !row.trapSeconds)
      row.trapSeconds = said.duration;
    if (said.kind == "verdict") {
      named.push_back(said.culprit);
      row.verdict = named.size() == 1 ? nameOf(said.culprit) : row.verdict + " and " + nameOf(said.culprit);
    }
    if (said.kind == "mitigation-applied" && appliedAt == 0) {
      appliedAt = said.time;
      row.action = said.text;
    }
    if (said.kind == "relief" && said.time >= truth.ended) row.reliefSeen = true;
    if (said.kind == "mitigation-undone" && said.time >= truth.ended) row.undone = true;
  }
  row.right = named.size() == 1 && isRight(named.front(), truth.culprit);
  if (appliedAt > 0) {
    row.mitigated = medianBetween(with, appliedAt, truth.ended);
    const double lost = row.slow - row.healthy;
    if (row.mitigated && lost > 0) row.recovered = (row.slow - *row.mitigated) / lost;
  }
  return row;
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
    Said one{entry.value("kind", ""),
             entry.value("time_s", 0.0),
             {},
             entry.value("duration_s", 0.0),
             entry.value("text", "")};
    if (entry.contains("culprit")) {
      const json& culprit = entry["culprit"];
      one.culprit.kind = culprit.value("kind", "") == "rank" ? CulpritKind::rank : CulpritKind::link;
      one.culprit.rank = culprit.value("rank", -1);
      one.culprit.link = {culprit.value("from", -1), culprit.value("to", -1)};
      one.culprit.bothWays = culprit.value("both_ways", false);
    }
    said.push_back(std::move(one));
  }
  return said;
}

Evaluation evaluate(const Run& with, const Run& without) {
  Evaluation evaluation;
  evaluation.throughputWith = throughput(with);
  evaluation.throughputWithout = throughput(without);
  if (!with.iterations.empty())
    evaluation.iterationMilliseconds =
        medianBetween(with, with.iterations.front().start, with.iterations.back().end).value_or(0);
  bool right = true;
  for (size_t i = 0; i < with.truths.size(); ++i) {
    const Truth& truth = with.truths[i];
    const double next = i + 1 < with.truths.size() ? with.truths[i + 1].started : 1e300;
    const double until = std::min(next, truth.ended + aftermathSeconds);
    evaluation.rows.push_back(
        evaluateOne(truth, with, without, i < without.truths.size() ? &without.truths[i] : nullptr, until));
    right = right && evaluation.rows.back().right && truth.effective;
  }
  for (const Said& said : with.said) {
    if (!isAlarm(said.kind)) continue;
    const bool explained = std::any_of(with.truths.begin(), with.truths.end(), [&](const Truth& truth) {
      return said.time >= truth.started && said.time <= truth.ended + aftermathSeconds;
    });
    if (!explained) evaluation.falseAlarms.push_back(fmt::format("{}: {}", said.kind, said.text));
  }
  evaluation.right = right && evaluation.falseAlarms.empty() && !with.iterations.empty();
  return evaluation;
}

json toJson(const Evaluation& evaluation) {
  const auto orNull = [](const auto& value) { return value ? json(*value) : json(); };
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
                    {"undone", row.undone}});
  }
  return {{"injections", rows},
          {"false_alarms", evaluation.falseAlarms},
          {"iteration_ms", evaluation.iterationMilliseconds},
          {"throughput_with", evaluation.throughputWith},
          {"throughput_without", evaluation.throughputWithout},
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
                    row.reliefSeen ? "seen" : "NOT SEEN", row.undone ? "yes" : "no"});
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
  for (const Row& row : evaluation.rows)
    if (!row.action.empty()) text += fmt::format("{}: {}\n", nameOf(row.truth.culprit), row.action);
  for (const std::string& alarm : evaluation.falseAlarms) text += "FALSE ALARM " + alarm + '\n';
  if (evaluation.throughputWithout > 0)
    text += fmt::format("throughput: {:.3f} iterations/s with Falcon, {:.3f} without ({:+.0f} %)\n",
                        evaluation.throughputWith, evaluation.throughputWithout,
                        (evaluation.throughputWith / evaluation.throughputWithout - 1) * 100);
  return text;
}

}  // namespace falcon::demo
