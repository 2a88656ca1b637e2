// NCCL's double binary trees.
#pragma once

#include <array>

#include "base/types.h"

namespace falcon::topology {

/// A rank's neighbours in a tree; -1 where there is none. `down[0]` is the child below, `down[1]` the child above.
struct TreeNode {
  Rank up = -1;
  std::array<Rank, 2> down{-1, -1};
  bool operator==(const TreeNode&) const = default;
};

/// The first tree over ranks 0 ... size-1: rank 0 is the root with one child, odd ranks are leaves.
/// `size` at least 1, `rank` in range. Depth grows with the logarithm of the size.
TreeNode firstTree(Rank rank, int size);

/// The second tree: the first one shifted by one rank (odd sizes) or mirrored (even sizes), so that with even sizes
/// every rank is a leaf in exactly one of the two, and each tree carries half of the data.
/// Source: Sanders, Speck, Traeff, Two-tree algorithms for full bandwidth broadcast, reduction and scan (2009).
TreeNode secondTree(Rank rank, int size);

}  // namespace falcon::topology
