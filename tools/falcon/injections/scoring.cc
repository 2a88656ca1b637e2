#include "injections/scoring.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "injections/draw.h"
#include "json_text.h"

namespace falcon::injections {
namespace {

using demo::Said;
using tools::orNull;

/// A rank, or one direction of a link.
std::set<Culprit> partsOf(const std::vector<Culprit>& culprits) {
  std::set<Culprit> parts;
  for (Culprit culprit : culprits) {
    const bool bothWays = std::exchange(culprit.bothWays, false);
    parts.insert(culprit);
    std::swap(culprit.link.from, culprit.link.to);
    if (bothWays) parts.insert(culprit);
  }
  return parts;
}

std::vector<Culprit> namedIn(const std::vector<Said>& said) {
  std::vector<Culprit> named;
  for (const Said& each : said)
    if (each.kind == "verdict") named.push_back(each.culprit);
  return named;
}

std::string orDash(const std::optional<double>& value) {
  return value ? fmt::format("{:.1f} s", *value) : "-";
}

template <class Value>
std::optional<Value> optionalFrom(const nlohmann::json& value) {
  return value.is_null() ? std::nullopt : std::optional(value.get<Value>());
}

// When the last of the truth was named; nothing if that never came.
std::optional<double> namedAt(const std::vector<Culprit>& truth, const std::vector<Said>& said) {
  for (auto end = said.begin(); end != said.end(); ++end)
    if (end->kind == "verdict" && allNamed(truth, {said.begin(), end + 1})) return end->time;
  return std::nullopt;
}

// On a machine that is busy with other things the job may be slower than it was already: then it gets worse.
bool isOnset(const Said& said) {
  return said.kind == "onset" || said.kind == "worsening";
}

void takeTimes(const Episode& episode, Row& row) {
  const auto onset = std::find_if(episode.said.begin(), episode.said.end(), [&](const Said& each) {
    return isOnset(each) && each.time >= episode.started && each.time <= episode.relieved;
  });
  if (onset != episode.said.end()) {
    row.delaySeconds = std::max(0.0, onset->time - episode.effective);
    row.delayIterations =
        static_cast<int>(std::count_if(episode.iterationEnds.begin(), episode.iterationEnds.end(),
                                       [&](double end) { return end > episode.effective && end <= onset->time; }));
  }
  const auto named = namedAt(episode.truth, episode.said);
  if (!named) return;
  // Where an earlier onset was open still, there is no other.
  const double from = onset == episode.said.end() ? episode.effective : std::min(onset->time, *named);
  row.validationSeconds = std::max(0.0, *named - from);
  row.trapSeconds = 0;
  for (const Said& each : episode.said) {
    const bool opened = each.kind == "trap-opened" || each.kind == "trap-timed-out";
    if (opened && each.time >= from && each.time <= *named) *row.trapSeconds += each.duration;
  }
}

}  // namespace

bool allNamed(const std::vector<Culprit>& truth, const std::vector<Said>& said) {
  const auto wanted = partsOf(truth), named = partsOf(namedIn(said));
  return std::includes(named.begin(), named.end(), wanted.begin(), wanted.end());
}

bool allRelieved(const std::vector<Said>& said, double relieved) {
  std::set<Culprit> slow;
  bool open = false;  // slower, nobody named
  for (const Said& each : said) {
    if (isOnset(each)) open = true;
    if (each.kind == "verdict") slow.merge(partsOf({each.culprit}));
    if (each.time < relieved) continue;
    if (each.kind == "relief" || each.kind == "easing") open = false;
    if (each.kind != "relief") continue;
    for (const Culprit& part : partsOf({each.culprit})) slow.erase(part);
  }
  return slow.empty() && !open;
}

Row scoreOf(const Episode& episode) {
  Row row;
  const std::vector<Culprit> said = namedIn(episode.said);
  const auto truth = partsOf(episode.truth), named = partsOf(said);
  row.truth = nameOf(episode.truth);
  row.verdict = nameOf(said);
  row.innocent = static_cast<int>(
      std::count_if(named.begin(), named.end(), [&](const Culprit& part) { return !truth.contains(part); }));
  row.reliefSeen = allRelieved(episode.said, episode.relieved);
  row.right = truth == named && (truth.empty() || row.reliefSeen);
  if (!truth.empty()) takeTimes(episode, row);
  return row;
}

Summary summaryOf(const std::vector<Row>& rows) {
  Summary summary;
  for (const Row& row : rows) {
    ++summary.count;
    summary.right += row.right;
    summary.innocent += row.innocent;
    summary.injected += row.truth != "none";
    summary.within15s += row.validationSeconds && *row.validationSeconds <= 15;
  }
  return summary;
}

nlohmann::ordered_json toJson(const Row& row) {
  return {{"truth", row.truth},
          {"verdict", row.verdict},
          {"right", row.right},
          {"innocent", row.innocent},
          {"delay_iterations", orNull(row.delayIterations)},
          {"delay_s", orNull(row.delaySeconds)},
          {"trap_s", orNull(row.trapSeconds)},
          {"validation_s", orNull(row.validationSeconds)}};
}

nlohmann::ordered_json toJson(const Summary& summary) {
  return {{"count", summary.count},
          {"right", summary.right},
          {"innocent", summary.innocent},
          {"within_15s", summary.within15s}};
}

Row rowFrom(const nlohmann::json& text) {
  Row row;
  row.truth = text.at("truth");
  row.verdict = text.at("verdict");
  row.right = text.at("right");
  row.innocent = text.at("innocent");
  row.reliefSeen = row.right;
  row.delayIterations = optionalFrom<int>(text.at("delay_iterations"));
  row.delaySeconds = optionalFrom<double>(text.at("delay_s"));
  row.trapSeconds = optionalFrom<double>(text.at("trap_s"));
  row.validationSeconds = optionalFrom<double>(text.at("validation_s"));
  return row;
}

std::string tableHead() {
  return fmt::format("{:>4}  {:<26} {:<26} {:<6} {:<9} {:<16} {:<7} {:<11} {}", "", "truth", "verdict", "right",
                     "innocent", "onset after", "trap", "validation", "relief");
}

std::string tableLine(int number, const Row& row) {
  const std::string delay = row.delaySeconds && row.delayIterations
                                ? fmt::format("{} it., {:.1f} s", *row.delayIterations, *row.delaySeconds)
                                : "-";
  return fmt::format("{:>4}  {:<26} {:<26} {:<6} {:<9} {:<16} {:<7} {:<11} {}", number, row.truth, row.verdict,
                     row.right ? "yes" : "NO", row.innocent, delay, orDash(row.trapSeconds),
                     orDash(row.validationSeconds), row.reliefSeen ? "seen" : "NOT SEEN");
}

}  // namespace falcon::injections
