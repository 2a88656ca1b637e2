#include "control/layout_facts.h"

#include <algorithm>
#include <optional>

#include "control/decisions.h"

namespace falcon::control {
namespace {

topology::Coordinates placeOf(const LayoutKnown& part) {
  return {part.dataParallelIndex, part.pipelineParallelIndex, part.tensorParallelIndex};
}

const LayoutKnown* partOf(const JobView& job, Rank rank) {
  const auto process = job.processOf(rank);
  if (!process) return nullptr;
  const auto& layout = job.members().at(*process).layout;
  return layout ? &*layout : nullptr;
}

/// A network that nobody has measured: what a state is taken to move at, bytes a second. [assumed] a tenth of 10 Gbit/s
constexpr double assumedRate = 125e6;
/// Seconds beside the moving: everybody has to come, and groups are made anew. Measured: 0.05 to 0.3 s with 8 ranks.
constexpr double exchangeSeconds = 1;

}  // namespace

void addLayout(const JobView& job, const std::map<std::string, int>& nodes, rebalance::JobFacts& facts) {
  std::optional<LayoutKnown> any;
  int registered = 0;
  for (const auto& [process, member] : job.members()) {
    if (!member.layout) continue;
    any = member.layout;
    ++registered;
  }
  if (!any) return;
  const topology::Layout layout{any->dataParallelSize, any->pipelineParallelSize, any->tensorParallelSize};
  if (registered != layout.size()) return;
  facts.layout = layout;
  facts.microBatches = any->microBatches;
  facts.microBatchesNow.assign(any->split.begin(), any->split.end());

  std::map<Rank, int> nodeOf;
  for (const auto& [id, communicator] : job.communicators())
    for (std::size_t i = 0; i < communicator.jobRanks.size() && i < communicator.nodes.size(); ++i)
      if (const auto node = nodes.find(communicator.nodes[i]); node != nodes.end())
        nodeOf[communicator.jobRanks[i]] = node->second;
  std::vector<Rank> rankAt(static_cast<std::size_t>(layout.size()), -1);
  std::vector<int> nodeOfPlace(rankAt.size());
  for (const auto& [process, member] : job.members()) {
    if (!member.layout) continue;
    const auto place = static_cast<std::size_t>(layout.rankAt(placeOf(*member.layout)));
    const auto node = nodeOf.find(member.identity.jobRank);
    if (place >= rankAt.size() || rankAt[place] >= 0 || node == nodeOf.end()) return;
    rankAt[place] = member.identity.jobRank;
    nodeOfPlace[place] = node->second;
  }
  facts.rankAt = std::move(rankAt);
  facts.nodeOfPlace = std::move(nodeOfPlace);
}

void addRoles(const JobView& job, rebalance::JobFacts& facts) {
  std::vector<int> roles(facts.rankAt.size());
  double bytes = 0, measured = 0;
  for (const auto& [process, member] : job.members()) {
    if (!member.layout) continue;
    const Rank rank = member.identity.jobRank;
    if (member.layout->role < 0 || rank < 0 || static_cast<std::size_t>(rank) >= roles.size()) return;
    roles[static_cast<std::size_t>(rank)] = member.layout->role;
    bytes = std::max(bytes, static_cast<double>(member.layout->stateBytes));
    measured = std::max(measured, member.reshapeSeconds);
  }
  facts.roles = std::move(roles);
  facts.swapSeconds = measured > 0 ? measured : exchangeSeconds + bytes / assumedRate;
}

rebalance::TrafficVolumes volumesOf(const JobView& job) {
  rebalance::TrafficVolumes volumes;
  for (const auto& [process, member] : job.members()) {
    if (!member.layout) continue;
    const auto from = placeOf(*member.layout);
    for (const auto& transfer : perIteration(member.healthyTransfers)) {
      const auto communicator = job.communicators().find(transfer.communicator);
      const auto peer = static_cast<std::size_t>(transfer.peer);
      if (!transfer.sending || transfer.peer < 0 || communicator == job.communicators().end()) continue;
      if (peer >= communicator->second.jobRanks.size()) continue;
      const LayoutKnown* const other = partOf(job, communicator->second.jobRanks[peer]);
      if (!other) continue;
      const auto to = placeOf(*other);
      const bool data = from.data != to.data, pipeline = from.pipeline != to.pipeline,
                 tensor = from.tensor != to.tensor;
      if (data + pipeline + tensor != 1) continue;  // a communicator across the parts of the layout
      double& volume = data ? volumes.data : pipeline ? volumes.pipeline : volumes.tensor;
      volume = std::max(volume, transfer.bytes);
    }
  }
  return volumes;
}

}  // namespace falcon::control
