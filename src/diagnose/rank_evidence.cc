#include "diagnose/rank_evidence.h"

#include <algorithm>
#include <cmath>

#include "base/format.h"
#include "validate/gpu_cause.h"
#include "validate/robust_statistics.h"

namespace falcon::diagnose {
namespace {

constexpr double mostHeldBack = 0.99;  // its logarithm has to be finite

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
/// @param prior     the usual scatter, which counts for `priorWeight` figures
Excess abovePeers(const std::vector<double>& figures, bool absolute, double prior, double priorWeight) {
  std::vector<double> values;
  for (const double figure : figures)
    if (known(figure)) values.push_back(figure);
  Excess excess{.of = figures, .scatter = validate::robustDeviation(values, prior, priorWeight)};
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

/// Of the test's time, that neither the rank nor chance took.
double heldBackOf(const RankFigures& rank) {
  const double quota = known(rank.throttledShare) ? rank.throttledShare : rank.evidence.throttled;
  if (!known(quota) && !known(rank.evidence.stolen)) return unknown;
  const double share = (known(quota) ? quota : 0) + (known(rank.evidence.stolen) ? rank.evidence.stolen : 0);
  return -std::log(1 - std::clamp(share, 0.0, mostHeldBack));
}

}  // namespace

RankEvidence::RankEvidence(const std::vector<RankFigures>& ranks, const std::map<Rank, validate::GpuSample>& gpus,
                           const Thresholds& thresholds)
    : thresholds_(thresholds) {
  // Against one's own healthy score where all have one: processors need not be equal.
  bool baselines = !ranks.empty();
  for (const auto& rank : ranks) baselines = baselines && (!known(rank.score) || rank.baselineScore > 0);

  std::vector<double> slowness, runningSlowness, growth, heldBack, memoryRates;
  std::vector<validate::CauseEvidence> evidence;
  for (const auto& rank : ranks) {
    slowness.push_back((baselines ? logarithm(rank.baselineScore) : 0) - logarithm(rank.score));
    runningSlowness.push_back(logarithm(rank.evidence.ran) - logarithm(rank.score));
    growth.push_back(logarithm(rank.ownTimeGrowth));
    heldBack.push_back(heldBackOf(rank));
    evidence.push_back(rank.evidence);
    if (known(rank.memoryRate)) memoryRates.push_back(rank.memoryRate);
  }
  const double weight = thresholds_.priorOfRanks;
  const Excess score = abovePeers(slowness, baselines, thresholds_.scatterOfScore, weight);
  const Excess running = abovePeers(runningSlowness, false, thresholds_.scatterOfScore, weight);
  const Excess own = abovePeers(growth, true, thresholds_.scatterOfGrowth, weight);
  const Excess held = abovePeers(heldBack, true, thresholds_.scatterOfHeldBack, weight);
  const double usualMemory = median(memoryRates);
  usual_ = validate::usualOf(evidence);

  constexpr double never = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const RankFigures& rank = ranks[i];
    Facts& facts = facts_[rank.rank];
    facts = {.figures = rank, .score = score.of[i], .own = own.of[i], .heldBack = held.of[i], .counted = rank.evidence};
    if (known(facts.score)) facts.counted.computeSlowness = std::exp(facts.score);
    facts.counted.memorySlowness = usualMemory / rank.memoryRate;

    double tested = facts.score;
    if (known(tested) && known(facts.own) && known(running.of[i]))
      tested = std::min(tested, std::max(running.of[i], thresholds_.mostPerGrowth * facts.own));
    // When all others became faster, nobody is slow.
    const double grown = std::min(facts.own, known(facts.own) ? growth[i] : facts.own);
    const bool hasPartOfDelay = !(rank.shareOfDelay < thresholds_.leastPartOfRank);
    add(Quantity::ownTime, rank.rank, grown, own.scatter, hasPartOfDelay ? thresholds_.aloneRank : never);
    add(Quantity::computeTest, rank.rank, tested, score.scatter, thresholds_.aloneRank);
    add(Quantity::heldBack, rank.rank, facts.heldBack, held.scatter, never);
    const double most = std::fmax(facts.score, facts.own);
    if (most > thresholds_.aloneRank || facts.heldBack > thresholds_.leastOfRank)
      lookSlow_[rank.rank] = std::fmax(most, 0);
  }
  addGpus(gpus);
}

void RankEvidence::add(Quantity quantity, Rank rank, double value, double sigma, double aloneFrom) {
  if (!known(value)) return;
  observations_.push_back({.quantity = quantity, .rank = rank, .value = value, .sigma = sigma, .aloneFrom = aloneFrom});
}

void RankEvidence::addGpus(const std::map<Rank, validate::GpuSample>& gpus) {
  std::vector<Rank> ranks;
  std::vector<validate::GpuSample> samples;
  for (const auto& [rank, sample] : gpus) {
    ranks.push_back(rank);
    samples.push_back(sample);
  }
  const auto judged = validate::judgeGpus(samples);
  for (std::size_t i = 0; i < judged.size(); ++i) {
    const double value = judged[i].slow ? std::log(judged[i].slowdown) : 0;
    add(Quantity::gpuTest, ranks[i], value, thresholds_.scatterOfGpu, thresholds_.aloneGpu);
    if (judged[i].slow)
      facts_[ranks[i]].gpu = fmt::format("its GPU ({} at {}) is slow: {} ({})", samples[i].score.device,
                                         samples[i].score.bus, judged[i].evidence, nameOf(judged[i].cause));
  }
}

std::string RankEvidence::textOf(Rank rank, bool named) const {
  const auto found = facts_.find(rank);
  if (found == facts_.end()) return {};
  const Facts& facts = found->second;
  const double slow = thresholds_.leastOfRank;
  const bool testIsSlow = facts.score >= slow, isHeldBack = facts.heldBack >= slow / 2;
  std::string text, why;
  if (known(facts.score))
    text += fmt::format("matrix products {:.2f} times slower than its peers'", std::exp(facts.score));
  if (known(facts.own))
    text += fmt::format("{}own time {:.2f} times its baseline, {:.2f} times its peers' growth",
                        text.empty() ? "" : ", ", facts.figures.ownTimeGrowth, std::exp(facts.own));
  if (known(facts.own) && known(facts.figures.shareOfDelay))
    text += fmt::format(", {:.0f} % of the delay", 100 * std::clamp(facts.figures.shareOfDelay, 0.0, 1.0));
  if (isHeldBack && facts.figures.throttledShare > 0)
    text += fmt::format(", throttled {:.0f} % of the time", 100 * std::min(1.0, facts.figures.throttledShare));
  if (!facts.gpu.empty() && !testIsSlow && !(facts.own >= slow)) return facts.gpu;
  if (isHeldBack && facts.figures.throttledShare > 0)
    why = "a CPU quota holds it back";
  else if (testIsSlow)
    why = "its processor does less work";
  else if (known(facts.score))
    why = "its processor passes the test, so the cause is outside of it (memory, data, garbage collection)";
  else
    why = "its own work takes longer";
  if (!named) return text;
  text += ": " + why;
  if (const validate::Diagnosis diagnosis = validate::diagnose(facts.counted, usual_);
      diagnosis.cause != validate::Cause::unexplained)
    text += fmt::format(" ({}: {})", nameOf(diagnosis.cause), diagnosis.evidence);
  if (!facts.gpu.empty()) text += "; " + facts.gpu;
  return text;
}

}  // namespace falcon::diagnose
