#include "demo/restart_evaluation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <regex>

#include "base/median.h"

namespace falcon::demo {
namespace {

using nlohmann::json;

constexpr std::size_t warmUp = 3;       // iterations after a start that are not judged
constexpr double before = 15;           // seconds of health that are judged
constexpr double priceTolerance = 0.9;  // the planner's account and the stamps differ by the iteration in progress

const Said* restartIn(const RestartRun& run) {
  for (const Said& said : run.said)
    if (said.kind == "mitigation-applied" && said.action == "restart") return &said;
  return nullptr;
}

/// Where the restarted job's iterations begin: after the longest pause since the restart was decided.
std::size_t restartedAt(const std::vector<NumberedIteration>& iterations, double decided) {
  std::size_t at = iterations.size();
  double longest = 0;
  for (std::size_t i = 1; i < iterations.size(); ++i) {
    const double pause = iterations[i].start - iterations[i - 1].end;
    if (iterations[i].start > decided && pause > longest) longest = pause, at = i;
  }
  return at;
}

void judgeLosses(const RestartRun& run, RestartEvaluation& result) {
  const LossComparison losses = compareLosses(run.iterations, run.undisturbed);
  result.largestDifference = losses.largestDifference;
  if (losses.compared < run.iterations.size())
    result.missing.push_back(fmt::format("only {} of {} iterations have a loss of the undisturbed run beside them",
                                         losses.compared, run.iterations.size()));
  if (!(losses.largestDifference <= sameLoss))
    result.missing.push_back(
        fmt::format("a loss differs from the undisturbed run's by {:.2e}", losses.largestDifference));
}

}  // namespace

RestartEvaluation evaluate(const RestartRun& run) {
  RestartEvaluation result;
  const auto miss = [&](std::string what) { result.missing.push_back(std::move(what)); };
  const bool named = std::any_of(run.said.begin(), run.said.end(), [&](const Said& said) {
    return said.kind == "verdict" && said.culprit.kind == CulpritKind::rank && said.culprit.rank == run.slow;
  });
  if (!named) miss(fmt::format("rank {} was not named", run.slow));
  const Said* const restart = restartIn(run);
  if (!restart) {
    miss("no restart was decided");
    return result;
  }
  const std::size_t at = restartedAt(run.iterations, restart->time);
  const auto boundary = run.iterations.begin() + static_cast<std::ptrdiff_t>(at);
  std::vector<NumberedIteration> healthy, slow;
  for (auto each = run.iterations.begin(); each != boundary; ++each) {
    if (each->end <= run.slowSince && each->start >= run.slowSince - before) healthy.push_back(*each);
    if (each->start >= run.slowSince) slow.push_back(*each);
  }
  std::vector<NumberedIteration> afterwards(boundary, run.iterations.end());
  if (at > 0) result.lastBefore = run.iterations[at - 1].number;
  if (!afterwards.empty()) {
    result.firstAfterwards = afterwards.front().number;
    if (at > 0) result.stoodSeconds = afterwards.front().start - run.iterations[at - 1].end;
    afterwards.erase(afterwards.begin(),
                     afterwards.begin() + static_cast<std::ptrdiff_t>(std::min(warmUp, afterwards.size())));
  }
  result.healthy = medianMilliseconds(healthy);
  result.slow = medianMilliseconds(slow);
  result.afterwards = medianMilliseconds(afterwards);
  result.undisturbed = medianMilliseconds(run.undisturbed);
  for (const NumberedIteration& each : slow)
    result.lostSeconds += std::max(0.0, each.end - each.start - result.healthy * 1e-3);
  if (healthy.size() < enoughIterations) miss("too few iterations before anybody was slow");
  if (result.slow < clearlySlow * result.healthy) miss("the rank that was slowed did not slow the job");
  if (afterwards.size() < enoughIterations)
    miss("the job did not go on after the restart");
  else if (result.afterwards > asFast * std::max(result.healthy, result.undisturbed))
    miss(fmt::format("iterations take {:.0f} ms after the restart, and took {:.0f} ms in health", result.afterwards,
                     result.healthy));

  std::smatch price;
  if (std::regex_search(restart->text, price, std::regex("price[^0-9;]*([0-9]+(\\.[0-9]+)?) s")))
    result.priceSeconds = std::stod(price[1]);
  if (!result.priceSeconds)
    miss("no price of the restart was said");
  else if (result.lostSeconds < priceTolerance * *result.priceSeconds)
    miss(fmt::format("the job was restarted when it had lost {:.1f} s, at a price of {:.1f} s", result.lostSeconds,
                     *result.priceSeconds));
  if (result.firstAfterwards && result.lastBefore && *result.firstAfterwards != *result.lastBefore + 1)
    miss(fmt::format(
        "iteration {} was the last before the restart, and {} the first after it: not the newest checkpoint",
        *result.lastBefore, *result.firstAfterwards));
  if (run.slowPlace.empty() || run.slowPlace == run.placeAfterwards) miss("the slow rank's place was not left");
  if (run.exitCode != 0) miss(fmt::format("the job ended with code {}", run.exitCode));
  judgeLosses(run, result);
  return result;
}

json toJson(const RestartEvaluation& evaluation) {
  json result = {{"healthy_ms", evaluation.healthy},
                 {"slow_ms", evaluation.slow},
                 {"afterwards_ms", evaluation.afterwards},
                 {"undisturbed_ms", evaluation.undisturbed},
                 {"lost_s", evaluation.lostSeconds},
                 {"stood_s", evaluation.stoodSeconds},
                 {"largest_loss_difference", evaluation.largestDifference},
                 {"missing", evaluation.missing},
                 {"right", evaluation.right()}};
  if (evaluation.priceSeconds) result["price_s"] = *evaluation.priceSeconds;
  if (evaluation.firstAfterwards) result["resumed_at"] = *evaluation.firstAfterwards;
  return result;
}

std::string toText(const RestartEvaluation& evaluation) {
  std::string text = fmt::format(
      "an iteration takes {:.0f} ms in health, {:.0f} ms with the slow rank, {:.0f} ms after the restart, {:.0f} ms "
      "undisturbed\n"
      "slowness had cost {:.1f} s when the job ended to be restarted{}; it stood still for {:.1f} s\n",
      evaluation.healthy, evaluation.slow, evaluation.afterwards, evaluation.undisturbed, evaluation.lostSeconds,
      evaluation.priceSeconds ? fmt::format(", at a price of {:.1f} s", *evaluation.priceSeconds) : "",
      evaluation.stoodSeconds);
  if (evaluation.firstAfterwards) text += fmt::format("it went on at iteration {}; ", *evaluation.firstAfterwards);
  return text +
         fmt::format(
             "no loss differs from the undisturbed run's by more than {:.1e}\n"
             "  medians of the iterations of the {:.0f} s before the rank became slow (in health), from then to the "
             "restart (with the slow rank), of all later ones but the first {} (after the restart), and of a whole run "
             "in which nobody was slow (undisturbed)\n",
             evaluation.largestDifference, before, warmUp);
}

}  // namespace falcon::demo
