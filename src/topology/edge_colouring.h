// Which links may be tested at the same time when ranks share addresses, NICs or cores.
#pragma once

#include <span>
#include <vector>

#include "base/types.h"

namespace falcon::topology {

/// Indices into the links that were given: the links of one wave run at the same time.
using Wave = std::vector<std::size_t>;

/// Puts links into few waves. In a wave no rank appears twice, and no resource is used more than `capacity` times,
/// where a link uses the resource of either end once. A link that alone needs more than the capacity (both ends on a
/// resource of capacity 1) has the resource to itself in its wave. Links are coloured in the order of how constrained
/// they are (DSATUR): exact when two waves are enough, e.g. an even ring; at most about twice the fewest possible
/// otherwise. Deterministic. Time: a link is looked at again for each link that shares a rank or a resource with it.
///
/// @param links           the union over all groups and channels; the same link may appear several times
/// @param resourceOfRank  resource of every rank that appears in `links`; empty: every rank has one of its own
/// @param capacity        at least 1
/// Source: Brelaz, New methods to color the vertices of a graph (1979), on the conflicts between links.
std::vector<Wave> linkWaves(std::span<const Link> links, std::span<const int> resourceOfRank, int capacity);

}  // namespace falcon::topology
