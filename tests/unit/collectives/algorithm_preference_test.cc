// NCCL_ALGO's syntax, and what a preference does to the choice.
#include "collectives/algorithm_preference.h"

#include <gtest/gtest.h>

#include "collectives/algorithm_choice.h"

namespace falcon::collectives {
namespace {

constexpr std::uint8_t tree = 1 << 0, ring = 1 << 1, nvls = 1 << 4;

PreferenceMasks parsed(std::string_view text) {
  const auto masks = parsePreferences(text, algorithmWords());
  EXPECT_TRUE(masks) << text;
  return masks ? *masks : PreferenceMasks();
}

TEST(PreferenceSyntax, NothingPrefersNothing) {
  EXPECT_EQ(parsed(""), PreferenceMasks());
}

TEST(PreferenceSyntax, OneListIsForAllOperations) {
  for (int i = 0; i < operationCount; ++i) {
    const auto operation = static_cast<Operation>(i);
    EXPECT_EQ(parsed("ring")[operation], ring);
    EXPECT_EQ(parsed("Tree,NVLS")[operation], tree | nvls);
    EXPECT_EQ(parsed("^TREE")[operation], static_cast<std::uint8_t>(~tree));
    EXPECT_EQ(parsed("^tree,ring")[operation], static_cast<std::uint8_t>(~(tree | ring)));
  }
}

TEST(PreferenceSyntax, LaterListsAreForTheirOperation) {
  const auto masks = parsed("ring;allreduce:tree,nvls;Broadcast:^ring");
  EXPECT_EQ(masks[Operation::reduce], ring);
  EXPECT_EQ(masks[Operation::allReduce], tree | nvls);
  EXPECT_EQ(masks[Operation::broadcast], static_cast<std::uint8_t>(~ring));
  const auto only = parsed("allreduce:tree;broadcast:ring");
  EXPECT_EQ(only[Operation::allReduce], tree);
  EXPECT_EQ(only[Operation::broadcast], ring);
  EXPECT_EQ(only[Operation::allGather], PreferenceMasks::everything);
}

TEST(PreferenceSyntax, RubbishIsRefused) {
  for (const char* text : {"rong", ",ring", ",", "^", "ring;tree", "allreduce:", "allreduce:tree:ring",
                           "allreduced:ring", "ring tree", ":ring", "allreduce:ring;;tree"})
    EXPECT_FALSE(parsePreferences(text, algorithmWords())) << text;
}

TEST(AlgorithmChoice, FollowsThePreferenceAtAnySize) {
  for (const int ranks : {1, 2, 3, 100})
    for (std::size_t bytes = 0; bytes < std::size_t{1} << 40; bytes = bytes * 5 + 1) {
      EXPECT_EQ(&chooseAlgorithm(Operation::allReduce, bytes, ranks, tree), &treeAllReduce);
      EXPECT_EQ(&chooseAlgorithm(Operation::allReduce, bytes, ranks, ring), &ringAllReduce);
      const auto* free = &chooseAlgorithm(Operation::allReduce, bytes, ranks);
      EXPECT_EQ(&chooseAlgorithm(Operation::allReduce, bytes, ranks, tree | ring), free);
      EXPECT_EQ(&chooseAlgorithm(Operation::allReduce, bytes, ranks, nvls), free) << "there is no NVLS";
      EXPECT_EQ(&chooseAlgorithm(Operation::broadcast, bytes, ranks, tree), &ringBroadcast) << "there is no tree";
    }
}

TEST(AgreedPreferences, AreWhatAllHaveInCommon) {
  EXPECT_EQ(agreedPreferences(parsed("ring"), parsed("ring,tree")), parsed("ring"));
  EXPECT_EQ(agreedPreferences(parsed("ring"), {}), parsed("ring"));
  EXPECT_EQ(agreedPreferences(parsed("ring"), parsed("tree")), PreferenceMasks());
  EXPECT_EQ(agreedPreferences(parsed("allreduce:tree"), parsed("reduce:ring")), parsed("allreduce:tree;reduce:ring"));
}

}  // namespace
}  // namespace falcon::collectives
