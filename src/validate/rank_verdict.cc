#include "validate/rank_verdict.h"

#include <algorithm>
#include <cmath>

#include "base/format.h"
#include "validate/cause.h"
#include "validate/gpu_cause.h"
#include "validate/robust_statistics.h"

namespace falcon::validate {
namespace {

// The papers' threshold for a slow processor, and what counts as strong and as weak support.
const double slowLog = std::log(1.2);
const double strongLog = std::log(1.5);
const double weakLog = std::log(1.1);
// Usual scatter of healthy ranks (logarithms): eight ranks on two cores differ by 10-20 % in a test of 500 ms,
// depending on how the scheduler spreads them; own times, means over several iterations, by 5-10 %.
constexpr double scoreScatter = 0.15;
constexpr double growthScatter = 0.08;
constexpr double priorWeight = 6;
// Squared distance of two independent figures in units of their scatter. 33 is passed by chance once in ten million
// ranks.
constexpr double jointDistance = 33;
// For one figure alone, in units of its scatter.
constexpr double scoreAlone = 5;
constexpr double growthAlone = 6;
// A core's loss that is no mere moment slows the rank's own work too; bursts of it less than a test of half a second.
constexpr double mostPerGrowth = 2;
// Own time alone accuses nobody of what somebody else does: as much of the delay as a group needs to be tested beside
// another cause.
constexpr double leastShareOfDelay = 0.3;
// Of the span, more than the median rank. Healthy ranks under a common quota are throttled alike.
constexpr double throttledMore = 0.1;

bool known(double value) {
  return !std::isnan(value);
}

/// How far every rank is above its peers, in logarithms; NaN where unknown.
struct Excess {
  std::vector<double> of;
  double scatter = 0;
};

/// @param figures  logarithms, larger is slower; NaN unknown
/// @param absolute  0 means healthy, so that one value can be judged without peers
Excess abovePeers(const std::vector<double>& figures, bool absolute, double prior) {
  std::vector<double> values;
  for (const double figure : figures)
    if (known(figure)) values.push_back(figure);
  Excess excess{.of = figures, .scatter = robustDeviation(values, prior, priorWeight)};
  double centre = median(values);
  if (values.size() == 2) {
    centre = std::min(values[0], values[1]);
    excess.scatter = prior;  // two values have no scatter of their own
  } else if (values.size() < 2) {
    centre = absolute ? 0 : unknown;
    excess.scatter = prior;
  }
  for (double& value : excess.of) value -= centre;
  return excess;
}

double logarithm(double value) {
  return value > 0 ? std::log(value) : unknown;
}

double confidenceFor(double margin) {
  return 1 - 0.1 * std::exp(-3 * (std::max(margin, 1.0) - 1));
}

}  // namespace

std::vector<SlowRank> RankJudgement::namedAndSuspected() const {
  std::vector<SlowRank> all = slow;
  all.insert(all.end(), suspected.begin(), suspected.end());
  return all;
}

RankJudgement judgeRanks(const std::vector<RankFigures>& ranks) {
  // Against one's own healthy score where all have one: processors need not be equal.
  bool baselines = !ranks.empty();
  for (const auto& rank : ranks) baselines = baselines && (!known(rank.score) || rank.baselineScore > 0);

  std::vector<double> slowness, runningSlowness, growth, shares, memoryRates;
  std::vector<CauseEvidence> evidence;
  for (const auto& rank : ranks) {
    slowness.push_back((baselines ? logarithm(rank.baselineScore) : 0) - logarithm(rank.score));
    runningSlowness.push_back(logarithm(rank.evidence.ran) - logarithm(rank.score));
    growth.push_back(logarithm(rank.ownTimeGrowth));
    evidence.push_back(rank.evidence);
    if (known(rank.memoryRate)) memoryRates.push_back(rank.memoryRate);
    if (known(rank.throttledShare)) shares.push_back(rank.throttledShare);
  }
  const Excess score = abovePeers(slowness, baselines, scoreScatter);
  const Excess running = abovePeers(runningSlowness, false, scoreScatter);
  const CauseEvidence usual = usualOf(evidence);
  const Excess own = abovePeers(growth, true, growthScatter);
  const double usualShare = shares.size() >= 3 ? median(shares)
                            : shares.empty()   ? 0
                                               : *std::min_element(shares.begin(), shares.end());

  RankJudgement judgement;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const double g = own.of[i];
    const bool scoreKnown = known(score.of[i]), growthKnown = known(g);
    double s = score.of[i];
    if (scoreKnown && growthKnown && known(running.of[i])) s = std::min(s, std::max(running.of[i], mostPerGrowth * g));
    const bool throttled = known(ranks[i].throttledShare) && ranks[i].throttledShare - usualShare > throttledMore;
    const auto square = [](double value) { return value * value; };
    const double distance =
        scoreKnown && growthKnown && s > 0 && g > 0 ? square(s / score.scatter) + square(g / own.scatter) : 0;

    double margin = 0;  // 1 and more: named
    std::string why;
    const auto take = [&](double value, const char* text) {
      if (value > margin) margin = value, why = text;
    };
    if (throttled && growthKnown) take(g / std::max(slowLog, 3 * own.scatter), "a CPU quota holds it back");
    if (throttled && !growthKnown && scoreKnown) take(s / slowLog, "a CPU quota holds it back");
    if (s > slowLog && g > slowLog) take(distance / jointDistance, "its processor does less work");
    if (scoreKnown && (!growthKnown || g > weakLog))
      take(s / std::max(strongLog, scoreAlone * score.scatter), "its processor does less work");
    if (growthKnown && !(ranks[i].shareOfDelay < leastShareOfDelay))
      take(g / std::max(strongLog, growthAlone * own.scatter),
           scoreKnown && s < slowLog
               ? "its processor passes the test, so the cause is outside of it (memory, data, garbage collection)"
               : "its own work takes longer");

    std::string figures;
    if (scoreKnown)
      figures += fmt::format("matrix products {:.2f} times slower than its peers'", std::exp(score.of[i]));
    if (growthKnown)
      figures += fmt::format("{}own time {:.2f} times its baseline, {:.2f} times its peers' growth",
                             figures.empty() ? "" : ", ", ranks[i].ownTimeGrowth, std::exp(g));
    if (growthKnown && known(ranks[i].shareOfDelay))
      figures += fmt::format(", {:.0f} % of the delay", 100 * std::clamp(ranks[i].shareOfDelay, 0.0, 1.0));
    if (throttled)
      figures += fmt::format(", throttled {:.0f} % of the time", 100 * std::min(1.0, ranks[i].throttledShare));
    SlowRank rank{ranks[i].rank, 1, confidenceFor(margin), figures + ": " + why};
    if (scoreKnown) rank.slowdown = std::max(rank.slowdown, std::exp(score.of[i]));
    if (growthKnown) rank.slowdown = std::max(rank.slowdown, std::exp(g));
    if (margin >= 1) {
      CauseEvidence counted = evidence[i];
      if (scoreKnown) counted.computeSlowness = std::exp(score.of[i]);
      counted.memorySlowness = median(memoryRates) / ranks[i].memoryRate;
      const Diagnosis diagnosis = diagnose(counted, usual);
      if (diagnosis.cause != Cause::unexplained)
        rank.evidence += fmt::format(" ({}: {})", nameOf(diagnosis.cause), diagnosis.evidence);
      judgement.slow.push_back(std::move(rank));
      continue;
    }
    if (rank.slowdown > std::exp(strongLog) || throttled) {
      if (margin >= judgement.suspicion) judgement.remark = fmt::format("rank {} is not named: {}", rank.rank, figures);
      judgement.suspected.push_back(std::move(rank));
    }
    judgement.suspicion = std::max(judgement.suspicion, margin);
  }
  return judgement;
}

RankJudgement judgeProcessors(const VerdictInput& input) {
  RankJudgement judgement = judgeRanks(input.ranks);
  std::vector<Rank> ranks;
  std::vector<GpuSample> samples;
  for (const auto& [rank, sample] : input.gpus) {
    ranks.push_back(rank);
    samples.push_back(sample);
  }
  const auto judged = judgeGpus(samples);
  for (std::size_t i = 0; i < judged.size(); ++i) {
    if (!judged[i].slow) continue;
    std::string evidence = fmt::format("its GPU ({} at {}) is slow: {} ({})", samples[i].score.device,
                                       samples[i].score.bus, judged[i].evidence, nameOf(judged[i].cause));
    const auto named = std::find_if(judgement.slow.begin(), judgement.slow.end(),
                                    [&](const SlowRank& slow) { return slow.rank == ranks[i]; });
    if (named != judgement.slow.end()) {
      named->evidence += "; " + evidence;
      continue;
    }
    std::erase_if(judgement.suspected, [&](const SlowRank& suspect) { return suspect.rank == ranks[i]; });
    judgement.slow.push_back(
        {ranks[i], judged[i].slowdown, confidenceFor(std::log(judged[i].slowdown) / slowLog), std::move(evidence)});
  }
  return judgement;
}

}  // namespace falcon::validate
