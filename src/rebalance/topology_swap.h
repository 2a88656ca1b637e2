// S3: give a slow link from data parallelism to pipeline parallelism by swapping two nodes.
#pragma once

#include <optional>
#include <span>

#include "rebalance/node_permutation.h"
#include "topology/layout.h"

namespace falcon::rebalance {

/// The two nodes that exchange their ranks, place by place.
struct NodeSwap {
  int first = -1, second = -1;
  double bytesBefore = 0;  ///< an iteration, over the slow link, in its slow direction or directions
  double bytesAfter = 0;
  bool operator==(const NodeSwap&) const = default;
};

/// Which two nodes to swap so that the least is moved between two nodes. Only swaps that keep tensor groups as close
/// together as they are, between nodes of equally many ranks.
///
/// @param layout      who talks to whom
/// @param nodeOfRank  node of every job rank
/// @param slow        nodes, not ranks: the slow link's ends
/// @return            the best swap, the first one among equals; nothing when none makes the link carry less
std::optional<NodeSwap> swapForLink(const topology::Layout& layout, std::span<const int> nodeOfRank, Link slow,
                                    bool bothWays, const TrafficVolumes& volumes);

}  // namespace falcon::rebalance
