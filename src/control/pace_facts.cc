#include "control/pace_facts.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "control/decisions.h"

namespace falcon::control {
namespace {

constexpr double leastPartsInterleaved = 2;

/// A pipeline is interleaved where replicas get multiples of its stages: no other one needs that.
bool isInterleaved(const rebalance::JobFacts& facts) {
  const int stages = facts.layout->pipelineSize;
  return stages > 1 && facts.limits.multiple % stages == 0;
}

void addReplicas(const JobView& job, std::size_t window, rebalance::JobFacts& facts) {
  const auto replicas = static_cast<std::size_t>(facts.layout->dataSize);
  const auto stages = static_cast<std::size_t>(facts.layout->pipelineSize);
  std::vector<std::vector<double>> times(replicas, std::vector<double>(stages));
  for (const auto& [process, member] : job.members()) {
    if (!member.layout) continue;
    const auto replica = static_cast<std::size_t>(member.layout->dataParallelIndex);
    const auto stage = static_cast<std::size_t>(member.layout->pipelineParallelIndex);
    if (replica >= replicas || stage >= stages) continue;
    double& slowest = times[replica][stage];
    slowest = std::max(slowest, JobView::means(member, window).outsidePerMicroBatch);
  }
  const double parts = isInterleaved(facts) ? leastPartsInterleaved : 1;
  std::vector<double> seconds, fills;
  bool allStages = true;
  for (const std::vector<double>& ofStages : times) {
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

void addPaces(const JobView& job, std::size_t window, rebalance::JobFacts& facts) {
  addReplicas(job, window, facts);
  addStages(job, window, facts);
}

}  // namespace falcon::control
