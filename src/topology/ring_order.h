// The order in which a communicator's ranks form a ring.
#pragma once

#include <span>
#include <vector>

#include "base/types.h"

namespace falcon::topology {

/// A ring that enters and leaves every node once: ranks of a node stand together, nodes in the order in which they
/// first appear, ranks inside a node ascending. Starts with rank 0. All ranks that know the same nodes compute the same
/// ring.
///
/// @param nodeOfRank  any numbers; equal numbers mean the same node
/// @return            a permutation of 0 ... size-1
std::vector<Rank> ringOrder(std::span<const int> nodeOfRank);

/// The links ring[i] -> ring[i+1], closing one included; none for fewer than two ranks.
std::vector<Link> ringLinks(std::span<const Rank> ring);

}  // namespace falcon::topology
