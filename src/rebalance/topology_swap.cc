#include "rebalance/topology_swap.h"

#include <map>
#include <vector>

#include "topology/ring_order.h"

namespace falcon::rebalance {
namespace {

struct Flow {
  Link link;  // job ranks
  double bytes = 0;
  bool tensor = false;
};

std::vector<Flow> flowsOf(const topology::Layout& layout, const TrafficVolumes& volumes) {
  std::vector<Flow> flows;
  const auto addRing = [&](const std::vector<Rank>& group, double bytes, bool tensor) {
    for (const Link& link : topology::ringLinks(group)) flows.push_back({link, bytes, tensor});
  };
  for (Rank rank = 0; rank < layout.size(); ++rank) {
    const auto at = layout.coordinatesOf(rank);
    if (at.data == 0) addRing(layout.dataGroup(rank), volumes.data, false);
    if (at.tensor == 0) addRing(layout.tensorGroup(rank), volumes.tensor, true);
    if (at.pipeline + 1 == layout.pipelineSize) continue;
    // Activations go forward, gradients of the same size back.
    const Rank next = layout.rankAt({at.data, at.pipeline + 1, at.tensor});
    flows.push_back({{rank, next}, volumes.pipeline, false});
    flows.push_back({{next, rank}, volumes.pipeline, false});
  }
  return flows;
}

struct Load {
  double slow = 0;           // bytes over the slow link
  double tensorBetween = 0;  // bytes of tensor parallelism between nodes
};

Load loadOf(std::span<const Flow> flows, std::span<const int> nodeOfRank, Link slow, bool bothWays) {
  Load load;
  for (const Flow& flow : flows) {
    const Link nodes{nodeOfRank[static_cast<std::size_t>(flow.link.from)],
                     nodeOfRank[static_cast<std::size_t>(flow.link.to)]};
    if (nodes == slow || (bothWays && nodes == Link{slow.to, slow.from})) load.slow += flow.bytes;
    if (flow.tensor && nodes.from != nodes.to) load.tensorBetween += flow.bytes;
  }
  return load;
}

}  // namespace

std::optional<NodeSwap> swapForLink(const topology::Layout& layout, std::span<const int> nodeOfRank, Link slow,
                                    bool bothWays, const TrafficVolumes& volumes) {
  if (nodeOfRank.size() != static_cast<std::size_t>(layout.size())) return std::nullopt;
  const auto flows = flowsOf(layout, volumes);
  const Load now = loadOf(flows, nodeOfRank, slow, bothWays);
  std::map<int, std::vector<std::size_t>> ranksOfNode;
  for (std::size_t rank = 0; rank < nodeOfRank.size(); ++rank) ranksOfNode[nodeOfRank[rank]].push_back(rank);

  std::optional<NodeSwap> best;
  for (auto first = ranksOfNode.begin(); first != ranksOfNode.end(); ++first) {
    for (auto second = std::next(first); second != ranksOfNode.end(); ++second) {
      if (first->second.size() != second->second.size()) continue;
      std::vector<int> swapped(nodeOfRank.begin(), nodeOfRank.end());
      for (const std::size_t rank : first->second) swapped[rank] = second->first;
      for (const std::size_t rank : second->second) swapped[rank] = first->first;
      const Load then = loadOf(flows, swapped, slow, bothWays);
      if (then.tensorBetween > now.tensorBetween || then.slow >= (best ? best->bytesAfter : now.slow)) continue;
      best = NodeSwap{first->first, second->first, now.slow, then.slow};
    }
  }
  return best;
}

}  // namespace falcon::rebalance
