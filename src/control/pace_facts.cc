#include "control/pace_facts.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "base/median.h"
#include "control/decisions.h"
#include "rebalance/node_order.h"
#include "rebalance/pooled_times.h"

namespace falcon::control {
namespace {

constexpr double leastPartsInterleaved = 2;

/// A pipeline is interleaved where replicas get multiples of its stages: no other one needs that.
bool isInterleaved(const rebalance::JobFacts& facts) {
  const int stages = facts.layout->pipelineSize;
  return stages > 1 && facts.limits.multiple % stages == 0;
}

/// Of a replica's stage the slowest rank.
struct Slowest {
  std::vector<double> measured;  ///< seconds for a micro-batch, by iteration
  double seconds = 0;            ///< 0: not known
  bool isNamed = false;          ///< one of the stage's ranks is a culprit
};

/// Seconds outside of the library for a micro-batch, of the newest iterations; none where one does not tell them.
std::vector<double> ownTimes(const MemberView& member, std::size_t window) {
  std::vector<double> times;
  for (std::size_t i = member.recent.size() - std::min(window, member.recent.size()); i < member.recent.size(); ++i) {
    const Sample& sample = member.recent[i];
    if (sample.outside <= 0) return {};
    times.push_back(sample.outsidePerMicroBatch());
  }
  return times;
}

/// The same stage of all replicas: whoever is no culprit differs from another one by more than chance, or not at all.
void pool(std::vector<Slowest>& ofStage) {
  std::vector<Slowest*> others;
  std::vector<std::vector<double>> measured;
  for (Slowest& each : ofStage) {
    if (each.isNamed || each.measured.empty()) continue;
    others.push_back(&each);
    measured.push_back(each.measured);
  }
  const std::vector<double> times = rebalance::pooledTimes(measured);
  for (std::size_t i = 0; i < others.size(); ++i) others[i]->seconds = times[i];
}

void addReplicas(const JobView& job, std::size_t window, std::span<const Culprit> culprits,
                 rebalance::JobFacts& facts) {
  const auto replicas = static_cast<std::size_t>(facts.layout->dataSize);
  const auto stages = static_cast<std::size_t>(facts.layout->pipelineSize);
  const std::vector<Rank> named = rebalance::slowRanksOf(culprits);
  std::vector<std::vector<Slowest>> all(stages, std::vector<Slowest>(replicas));
  for (const auto& [process, member] : job.members()) {
    if (!member.layout) continue;
    const auto replica = static_cast<std::size_t>(member.layout->dataParallelIndex);
    const auto stage = static_cast<std::size_t>(member.layout->pipelineParallelIndex);
    if (replica >= replicas || stage >= stages) continue;
    Slowest& slowest = all[stage][replica];
    slowest.isNamed = slowest.isNamed || std::ranges::find(named, member.identity.jobRank) != named.end();
    if (std::vector<double> own = ownTimes(member, window); mean(own, 0) > slowest.seconds) {
      slowest.seconds = mean(own);
      slowest.measured = std::move(own);
    }
  }
  for (std::vector<Slowest>& ofStage : all) pool(ofStage);
  const double parts = isInterleaved(facts) ? leastPartsInterleaved : 1;
  std::vector<double> seconds, fills;
  bool allStages = true;
  for (std::size_t replica = 0; replica < replicas; ++replica) {
    std::vector<double> ofStages;
    for (const std::vector<Slowest>& ofStage : all) ofStages.push_back(ofStage[replica].seconds);
    seconds.push_back(*std::max_element(ofStages.begin(), ofStages.end()));
    if (seconds.back() <= 0) return;
    allStages = allStages && *std::min_element(ofStages.begin(), ofStages.end()) > 0;
    fills.push_back((std::accumulate(ofStages.begin(), ofStages.end(), 0.0) - seconds.back()) / parts);
  }
  facts.secondsPerMicroBatch = std::move(seconds);
  if (allStages) facts.fillSeconds = std::move(fills);
}

/// Own times against the baseline, and the baseline's by stage.
void addStages(const JobView& job, std::size_t window, rebalance::JobFacts& facts) {
  std::vector<double> stages(static_cast<std::size_t>(facts.layout->pipelineSize));
  for (const auto& [process, member] : job.members()) {
    if (!member.layout || !member.healthy) return;
    const auto stage = static_cast<std::size_t>(member.layout->pipelineParallelIndex);
    if (stage >= stages.size()) return;
    double& slowest = stages[stage];
    slowest = std::max(slowest, member.healthy->outsidePerMicroBatch);
    if (const auto growth = ownTimeGrowth(member, window)) facts.timesAsLong[member.identity.jobRank] = *growth;
  }
  if (std::all_of(stages.begin(), stages.end(), [](double each) { return each > 0; }))
    facts.stageSeconds = std::move(stages);
}

}  // namespace

void addPaces(const JobView& job, std::size_t window, std::span<const Culprit> culprits, rebalance::JobFacts& facts) {
  addReplicas(job, window, culprits, facts);
  addStages(job, window, facts);
}

}  // namespace falcon::control
