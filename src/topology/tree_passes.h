// The links of a binary tree in rounds that may be tested at the same time.
#pragma once

#include <span>
#include <vector>

#include "topology/binary_tree.h"
#include "topology/pass.h"

namespace falcon::topology {

/// Splits the links of a binary tree into 4 passes of disjoint pairs, whatever its size: to the first child of ranks on
/// even levels, to the second child on even levels, and the same on odd levels. Passes may be empty.
///
/// @param nodes  nodes[rank]; one root (up = -1), parents and children agree
/// @return       passes[p]: links child -> parent (the way of a reduction); the other way round is as disjoint
/// Source: Falcon, arXiv 2410.12588, section 4.3 and figure 9.
std::vector<Pass> treePasses(std::span<const TreeNode> nodes);

}  // namespace falcon::topology
