#include "demo/swap_evaluation.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

namespace falcon::demo {
namespace {

constexpr double calmBefore = 15;  // seconds of health that are judged

const Said* find(const SwapRun& run, double since, const std::function<bool(const Said&)>& wanted) {
  for (const Said& said : run.said)
    if (said.time >= since && wanted(said)) return &said;
  return nullptr;
}

bool isSame(const Culprit& one, const Culprit& other) {
  return one.kind == CulpritKind::link && other.kind == CulpritKind::link &&
         (one.link == other.link || one.link == Link{other.link.to, other.link.from});
}

/// Whole iterations in between.
std::vector<NumberedIteration> between(const std::vector<NumberedIteration>& iterations, double from, double to) {
  std::vector<NumberedIteration> inside;
  for (const NumberedIteration& each : iterations)
    if (each.start >= from && each.end <= to) inside.push_back(each);
  return inside;
}

}  // namespace

SwapEvaluation evaluate(const SwapRun& run) {
  SwapEvaluation result;
  const auto miss = [&](std::string what) { result.missing.push_back(std::move(what)); };
  if (run.iterations.empty() || run.slowSince == 0) {
    miss("the link was never slow");
    return result;
  }
  const double end = run.iterations.back().end;
  const double healthyAgain = run.slowUntil > 0 ? run.slowUntil : end;
  const Said* const named = find(
      run, run.slowSince, [&](const Said& said) { return said.kind == "verdict" && isSame(said.culprit, run.slow); });
  const Said* const swap = find(
      run, run.slowSince, [](const Said& said) { return said.kind == "mitigation-applied" && said.action == "swap"; });
  const Said* const undone = find(
      run, healthyAgain, [](const Said& said) { return said.kind == "mitigation-undone" && said.action == "swap"; });
  const bool relieved = find(run, healthyAgain,
                             [&](const Said& said) { return said.kind == "relief" && isSame(said.culprit, run.slow); });
  if (named)
    result.namedAfter = named->time - run.slowSince;
  else
    miss(nameOf(run.slow) + " was not named");
  if (swap) {
    result.swappedAfter = swap->time - run.slowSince;
    result.change = swap->text;
  } else {
    miss("no ranks exchanged their roles");
  }
  if (!relieved) miss("it was not noticed that the link was healthy again");
  if (undone)
    result.undoneAfter = undone->time - healthyAgain;
  else
    miss("the exchange was not undone");

  const auto healthy = between(run.iterations, run.slowSince - calmBefore, run.slowSince);
  const auto slow = between(run.iterations, run.slowSince, swap ? swap->time : healthyAgain);
  const auto swapped = between(run.iterations, swap ? swap->time : end, healthyAgain);
  const auto afterwards = between(run.iterations, undone ? undone->time : end, end);
  result.healthy = medianMilliseconds(healthy);
  result.slow = medianMilliseconds(slow);
  result.swapped = medianMilliseconds(swapped);
  result.afterwards = medianMilliseconds(afterwards);
  if (healthy.size() < enoughIterations) miss("too few iterations before the link was slow");
  if (result.slow < clearlySlow * result.healthy) miss("the slow link did not slow the job");
  const auto judge = [&](const char* when, const std::vector<NumberedIteration>& iterations, double milliseconds) {
    if (iterations.size() < enoughIterations)
      miss(fmt::format("too few iterations {}", when));
    else if (milliseconds > asFast * result.healthy)
      miss(fmt::format("iterations take {:.0f} ms {}, and took {:.0f} ms in health", milliseconds, when,
                       result.healthy));
  };
  if (swap) judge("after the exchange", swapped, result.swapped);
  if (undone) judge("in the end", afterwards, result.afterwards);
  if (run.exitCode != 0) miss(fmt::format("the job ended with code {}", run.exitCode));

  const LossComparison losses = compareLosses(run.iterations, run.undisturbed);
  result.largestDifference = losses.largestDifference;
  if (losses.compared < run.iterations.size())
    miss(fmt::format("only {} of {} iterations have a loss of the undisturbed run beside them", losses.compared,
                     run.iterations.size()));
  if (!(losses.largestDifference <= sameLoss))
    miss(fmt::format("a loss differs from the undisturbed run's by {:.2e}", losses.largestDifference));
  return result;
}

nlohmann::json toJson(const SwapEvaluation& evaluation) {
  nlohmann::json result = {
      {"healthy_ms", evaluation.healthy}, {"slow_ms", evaluation.slow},
      {"swapped_ms", evaluation.swapped}, {"afterwards_ms", evaluation.afterwards},
      {"change", evaluation.change},      {"largest_loss_difference", evaluation.largestDifference},
      {"missing", evaluation.missing},    {"right", evaluation.right()}};
  const auto add = [&](const char* key, const std::optional<double>& value) {
    if (value) result[key] = *value;
  };
  add("named_after_s", evaluation.namedAfter);
  add("swapped_after_s", evaluation.swappedAfter);
  add("undone_after_s", evaluation.undoneAfter);
  return result;
}

std::string toText(const SwapEvaluation& evaluation) {
  std::string text = fmt::format(
      "an iteration takes {:.0f} ms in health, {:.0f} ms with the slow link, {:.0f} ms after the exchange, {:.0f} ms "
      "in "
      "the end\n",
      evaluation.healthy, evaluation.slow, evaluation.swapped, evaluation.afterwards);
  if (evaluation.namedAfter) text += fmt::format("named {:.1f} s after it became slow", *evaluation.namedAfter);
  if (evaluation.swappedAfter) text += fmt::format(", roles exchanged after {:.1f} s", *evaluation.swappedAfter);
  if (evaluation.undoneAfter)
    text += fmt::format(", taken back {:.1f} s after it was healthy again", *evaluation.undoneAfter);
  return text +
         fmt::format(
             "\nno loss differs from the undisturbed run's by more than {:.1e}\n"
             "  medians of the iterations of the {:.0f} s before the link became slow (in health), from then to the "
             "exchange (with the slow link), from there until the link was healthy again (after the exchange), and "
             "from the exchange's undoing on (in the end)\n",
             evaluation.largestDifference, calmBefore);
}

}  // namespace falcon::demo
