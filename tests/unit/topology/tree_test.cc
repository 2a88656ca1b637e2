#include <gtest/gtest.h>

#include <bit>

#include "topology/binary_tree.h"
#include "topology/tree_passes.h"
#include "unit/topology/shuffled_ring.h"

namespace falcon::topology {
namespace {

using TreeFunction = TreeNode (*)(Rank, int);

std::vector<TreeNode> treeOf(TreeFunction function, int size) {
  std::vector<TreeNode> nodes;
  for (Rank rank = 0; rank < size; ++rank) nodes.push_back(function(rank, size));
  return nodes;
}

int childrenOf(const TreeNode& node) {
  return (node.down[0] >= 0) + (node.down[1] >= 0);
}

class BinaryTrees : public testing::TestWithParam<int> {};

TEST_P(BinaryTrees, AreTreesOfLogarithmicDepthWithOneRoot) {
  const int size = GetParam();
  for (const TreeFunction function : {firstTree, secondTree}) {
    const auto nodes = treeOf(function, size);
    int roots = 0;
    for (Rank rank = 0; rank < size; ++rank) {
      const TreeNode& node = nodes[static_cast<size_t>(rank)];
      roots += node.up < 0;
      for (const Rank child : node.down)
        if (child >= 0) {
          EXPECT_EQ(nodes[static_cast<size_t>(child)].up, rank);
        }
      if (node.up >= 0) {
        const auto& siblings = nodes[static_cast<size_t>(node.up)].down;
        EXPECT_TRUE(siblings[0] == rank || siblings[1] == rank);
      }
      int depth = 0;
      for (Rank at = rank; nodes[static_cast<size_t>(at)].up >= 0; at = nodes[static_cast<size_t>(at)].up)
        ASSERT_LE(++depth, std::bit_width(static_cast<unsigned>(size)));
    }
    EXPECT_EQ(roots, 1);
  }
}

TEST_P(BinaryTrees, LetEveryRankWorkInOneOfThem) {
  const int size = GetParam();
  if (size < 2) return;
  const auto first = treeOf(firstTree, size), second = treeOf(secondTree, size);
  for (size_t rank = 0; rank < first.size(); ++rank) {
    const bool leafOfFirst = childrenOf(first[rank]) == 0, leafOfSecond = childrenOf(second[rank]) == 0;
    if (size % 2 == 0)
      EXPECT_NE(leafOfFirst, leafOfSecond) << rank;
    else
      EXPECT_TRUE(leafOfFirst || leafOfSecond || rank < 2) << rank;
  }
}

TEST_P(BinaryTrees, HaveFourPassesThatCoverEveryLinkOnce) {
  const int size = GetParam();
  for (const TreeFunction function : {firstTree, secondTree}) {
    const auto nodes = treeOf(function, size);
    const auto passes = treePasses(nodes);
    ASSERT_EQ(passes.size(), 4u);
    std::vector<Link> links;
    for (Rank rank = 0; rank < size; ++rank)
      if (nodes[static_cast<size_t>(rank)].up >= 0) links.push_back({rank, nodes[static_cast<size_t>(rank)].up});
    EXPECT_EQ(sorted(joined(passes)), sorted(links));
    for (const Pass& pass : passes) EXPECT_TRUE(disjoint(pass));
  }
}
INSTANTIATE_TEST_SUITE_P(Sizes, BinaryTrees, testing::Range(1, 70));

TEST(BinaryTree, IsTheOneOfNccl) {
  EXPECT_EQ(firstTree(0, 8), (TreeNode{-1, {-1, 4}}));
  EXPECT_EQ(firstTree(4, 8), (TreeNode{0, {2, 6}}));
  EXPECT_EQ(firstTree(6, 8), (TreeNode{4, {5, 7}}));
  EXPECT_EQ(firstTree(4, 6), (TreeNode{0, {2, 5}}));
  EXPECT_EQ(firstTree(5, 6), (TreeNode{4, {-1, -1}}));
  EXPECT_EQ(secondTree(7, 8), (TreeNode{-1, {-1, 3}}));
  EXPECT_EQ(secondTree(3, 8), (TreeNode{7, {5, 1}}));
  EXPECT_EQ(secondTree(1, 5), (TreeNode{-1, {-1, 0}}));
}

}  // namespace
}  // namespace falcon::topology
