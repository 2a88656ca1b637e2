// The links of a ring in rounds that may be tested at the same time.
#pragma once

#include <span>
#include <vector>

#include "topology/pass.h"

namespace falcon::topology {

/// Splits the links of a ring into passes of disjoint pairs; every link appears once.
/// An even ring needs 2 passes, an odd one 3, whatever its size.
///
/// @param ring  ranks in ring order, no duplicates; fewer than 2 have no links and no passes
/// @return      passes[p]: directed links ring[i] -> ring[i+1] that may be tested at the same time
/// Source: Falcon, arXiv 2410.12588, section 4.3 and figure 9.
std::vector<Pass> ringPasses(std::span<const Rank> ring);

}  // namespace falcon::topology
