#include "topology/tree_passes.h"

namespace falcon::topology {

std::vector<Pass> treePasses(std::span<const TreeNode> nodes) {
  std::vector<Pass> passes(4);
  std::vector<std::pair<Rank, int>> open;  // ranks whose children are still to visit, with their level
  for (size_t rank = 0; rank < nodes.size(); ++rank)
    if (nodes[rank].up < 0) open.emplace_back(static_cast<Rank>(rank), 0);
  while (!open.empty()) {
    const auto [rank, level] = open.back();
    open.pop_back();
    for (size_t side = 0; side < 2; ++side) {
      const Rank child = nodes[static_cast<size_t>(rank)].down[side];
      if (child < 0) continue;
      passes[static_cast<size_t>(level % 2) * 2 + side].push_back({child, rank});
      open.emplace_back(child, level + 1);
    }
  }
  return passes;
}

}  // namespace falcon::topology
