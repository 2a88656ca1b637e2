#include "validate/rank_verdict.h"

#include <cmath>

#include "base/format.h"
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

  std::vector<double> slowness, growth, shares;
  for (const auto& rank : ranks) {
    slowness.push_back((baselines ? logarithm(rank.baselineScore) : 0) - logarithm(rank.score));
    growth.push_back(logarithm(rank.ownTimeGrowth));
    if (known(rank.throttledShare)) shares.push_back(rank.throttledShare);
  }
  const Excess score = abovePeers(slowness, baselines, scoreScatter);
  const Excess own = abovePeers(growth, true, growthScatter);
  const double usualShare = shares.size() >= 3 ? median(shares)
                            : shares.empty()   ? 0
                                               : *std::min_element(shares.begin(), shares.end());

  RankJudgement judgement;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const double s = score.of[i], g = own.of[i];
    const bool scoreKnown = known(s), growthKnown = known(g);
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
    if (growthKnown)
      take(g / std::max(strongLog, growthAlone * own.scatter),
           scoreKnown && s < slowLog
               ? "its processor passes the test, so the cause is outside of it (memory, data, garbage collection)"
               : "its own work takes longer");

    std::string figures;
    if (scoreKnown) figures += fmt::format("matrix products {:.2f} times slower than its peers'", std::exp(s));
    if (growthKnown)
      figures += fmt::format("{}own time {:.2f} times its baseline, {:.2f} times its peers' growth",
                             figures.empty() ? "" : ", ", ranks[i].ownTimeGrowth, std::exp(g));
    if (throttled)
      figures += fmt::format(", throttled {:.0f} % of the time", 100 * std::min(1.0, ranks[i].throttledShare));
    SlowRank rank{ranks[i].rank, 1, confidenceFor(margin), figures + ": " + why};
    if (scoreKnown) rank.slowdown = std::max(rank.slowdown, std::exp(s));
    if (growthKnown) rank.slowdown = std::max(rank.slowdown, std::exp(g));
    if (margin >= 1) {
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

}  // namespace falcon::validate
