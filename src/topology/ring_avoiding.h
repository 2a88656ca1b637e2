// A ring around slow links.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "base/types.h"

namespace falcon::topology {

/// An order of the same ranks in which no slow link is adjacent, changing as little as possible: first no more links
/// between nodes than needed, then as few new links as possible (a directed ring cannot change fewer than 3).
/// Exact up to 12 ranks. Above, a search by moved segments: finds a ring whenever slow links are few beside the number
/// of ranks; may say "impossible" wrongly where nearly everything is slow.
///
/// @param ring        ranks in ring order, no duplicates
/// @param slow        directed links to avoid; those of other ranks are ignored
/// @param nodeOfRank  node of every rank of the ring; empty: every rank is a node of its own
/// @return            starts with ring[0]; `ring` itself when it uses no slow link; nothing when there is no such ring
///                    (2 ranks; a link slow both ways with 3)
std::optional<std::vector<Rank>> ringAvoiding(std::span<const Rank> ring, std::span<const Link> slow,
                                              std::span<const int> nodeOfRank = {});

}  // namespace falcon::topology
