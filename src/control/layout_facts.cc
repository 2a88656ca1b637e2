#include "control/layout_facts.h"

#include <algorithm>
#include <optional>

#include "control/decisions.h"

namespace falcon::control {
namespace {

topology::Layout sizesOf(const PartKnown& part) {
  return {part.dataParallelSize, part.pipelineParallelSize, part.tensorParallelSize};
}

topology::Coordinates placeOf(const PartKnown& part) {
  return {part.dataParallelIndex, part.pipelineParallelIndex, part.tensorParallelIndex};
}

const PartKnown* partOf(const JobView& job, Rank rank) {
  const auto process = job.processOf(rank);
  if (!process) return nullptr;
  const auto& layout = job.members().at(*process).layout;
  return layout ? &*layout : nullptr;
}

/// A replica must have, and has room for, what its tightest rank says. Rails only where all ranks have told theirs.
void addLimits(const JobView& job, rebalance::JobFacts& facts) {
  rebalance::SplitLimits& limits = facts.limits;
  const auto replicas = static_cast<std::size_t>(facts.layout->dataSize);
  limits.least.assign(replicas, 0);
  limits.most.assign(replicas, 0);
  std::vector<int> rails(static_cast<std::size_t>(facts.layout->size()));
  bool allRails = true;
  for (const auto& [process, member] : job.members()) {
    if (!member.layout) continue;
    const PartKnown& part = *member.layout;
    const auto replica = static_cast<std::size_t>(part.dataParallelIndex);
    const auto rank = static_cast<std::size_t>(member.identity.jobRank);
    if (replica >= replicas) continue;
    limits.multiple = std::max(limits.multiple, part.multiple);
    limits.evenOnly = limits.evenOnly || part.evenOnly;
    limits.least[replica] = std::max(limits.least[replica], part.leastMicroBatches);
    int& most = limits.most[replica];
    if (part.mostMicroBatches > 0) most = most > 0 ? std::min(most, part.mostMicroBatches) : part.mostMicroBatches;
    allRails = allRails && part.rail > 0 && rank < rails.size();
    if (allRails) rails[rank] = part.rail;
  }
  if (allRails) facts.railOfRank = std::move(rails);
}

}  // namespace

void addLayout(const JobView& job, const std::map<std::string, int>& nodes, rebalance::JobFacts& facts) {
  std::optional<PartKnown> any;
  int registered = 0;
  for (const auto& [process, member] : job.members()) {
    if (!member.layout) continue;
    if (any && !(sizesOf(*any) == sizesOf(*member.layout))) return;  // no layout of all of them
    any = member.layout;
    ++registered;
  }
  if (!any) return;
  const topology::Layout layout = sizesOf(*any);
  if (registered != layout.size()) return;
  facts.layout = layout;
  facts.microBatches = any->microBatches;
  facts.microBatchesNow.assign(any->split.begin(), any->split.end());
  addLimits(job, facts);

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
  for (const auto& [process, member] : job.members()) {
    if (!member.layout) continue;
    const auto rank = static_cast<std::size_t>(member.identity.jobRank);
    const auto role = static_cast<std::size_t>(member.layout->role);  // below 0: more than there are
    if (role >= roles.size() || rank >= roles.size()) return;
    roles[rank] = member.layout->role;
  }
  facts.roles = std::move(roles);
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
      const PartKnown* const other = partOf(job, communicator->second.jobRanks[peer]);
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
