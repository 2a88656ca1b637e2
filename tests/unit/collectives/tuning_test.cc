// Tuning files: what they may say, and what they do to the choice.
#include "collectives/tuning.h"

#include <gtest/gtest.h>

#include <limits>

namespace falcon::collectives {
namespace {

constexpr std::size_t noEnd = std::numeric_limits<std::size_t>::max();

Tuning tuningOf(std::string_view text, Extent extent = Extent::node) {
  auto tuning = parseTuning(text, extent);
  EXPECT_TRUE(tuning) << tuning.error().message();
  return tuning ? *tuning : Tuning();
}

TEST(Tuning, EveryLineThatCanBeWrittenIsRead) {
  for (int i = 0; i < operationCount; ++i) {
    for (const Extent extent : {Extent::node, Extent::network}) {
      for (const std::string& name : algorithmsFor(static_cast<Operation>(i), extent)) {
        for (const auto& [from, below] :
             {std::pair<std::size_t, std::size_t>{0, noEnd}, {1000, 4096}, {8 << 20, std::size_t{2} << 30}}) {
          const std::string line = format({static_cast<Operation>(i), extent, 3, from, below, name});
          const Tuning tuning = tuningOf(line, extent);
          ASSERT_EQ(tuning.direct.size(), 1u) << line;
          EXPECT_EQ(tuning.direct[0].fromBytes, from);
          EXPECT_EQ(tuning.direct[0].toBytes, below);
          EXPECT_EQ(tuning.direct[0].fromRanks, 3);
        }
      }
    }
  }
}

TEST(Tuning, AllReduceHasAChoiceEverywhereAndSendHasNone) {
  EXPECT_GE(algorithmsFor(Operation::allReduce, Extent::node).size(), 4u);
  EXPECT_EQ(algorithmsFor(Operation::allReduce, Extent::network),
            (std::vector<std::string>{"ring", "tree", "doubling", "exchange", "star"}));
  EXPECT_EQ(algorithmsFor(Operation::gather, Extent::node), (std::vector<std::string>{"direct", "messages"}));
  EXPECT_EQ(algorithmsFor(Operation::scatter, Extent::network), (std::vector<std::string>{"messages", "binomial"}));
  EXPECT_TRUE(algorithmsFor(Operation::gather, Extent::network).empty());
  EXPECT_TRUE(algorithmsFor(Operation::send, Extent::node).empty());
}

TEST(Tuning, TheLastLineThatAppliesCounts) {
  const Tuning tuning = tuningOf(
      "# a comment\n\n"
      "AllReduce node 2 0 - ring\n"
      "AllReduce node 3 1K 2K flat  # another\r\n"
      "AllReduce\tnode 3 2K - segments\n");
  const auto direct = [&](std::size_t bytes, int ranks) {
    return chooseDirect(Operation::allReduce, bytes, ranks, &tuning);
  };
  EXPECT_EQ(direct(1023, 3), nullptr);
  EXPECT_EQ(direct(1024, 3), &directAllReduceFlat);
  EXPECT_EQ(direct(2047, 8), &directAllReduceFlat);
  EXPECT_EQ(direct(2048, 3), &directAllReduceSegments);
  EXPECT_EQ(direct(std::size_t{1} << 40, 2), nullptr);
  EXPECT_EQ(&chooseAlgorithm(Operation::allReduce, 8, 8, PreferenceMasks::everything, &tuning), &ringAllReduce);
}

TEST(Tuning, WhereNoLineAppliesTheTablesDo) {
  const Tuning tuning = tuningOf("AllReduce node 4 4K 8K tree\nGather node 2 0 1K messages\n");
  for (const std::size_t bytes : {std::size_t{8}, std::size_t{4} << 10, std::size_t{8} << 10, std::size_t{16} << 20}) {
    EXPECT_EQ(chooseDirect(Operation::allReduce, bytes, 3, &tuning), chooseDirect(Operation::allReduce, bytes, 3));
    EXPECT_EQ(chooseDirect(Operation::broadcast, bytes, 4, &tuning), chooseDirect(Operation::broadcast, bytes, 4));
    EXPECT_EQ(&chooseAlgorithm(Operation::allReduce, bytes, 3, PreferenceMasks::everything, &tuning),
              &chooseAlgorithm(Operation::allReduce, bytes, 3));
  }
  EXPECT_EQ(&chooseAlgorithm(Operation::allReduce, 4096, 4, PreferenceMasks::everything, &tuning), &treeAllReduce);
  EXPECT_EQ(chooseDirect(Operation::gather, 1023, 2, &tuning), nullptr);
  EXPECT_EQ(chooseDirect(Operation::gather, 1024, 2, &tuning), chooseDirect(Operation::gather, 1024, 2));
}

TEST(Tuning, MessagesAreAChoiceToo) {
  const Tuning tuning = tuningOf("AlltoAll network 2 0 - messages\n", Extent::network);
  const auto found = [&](const Tuning* lines) {
    return findAlgorithm(Operation::allToAll, 64, 8, PreferenceMasks::everything, lines, Extent::network);
  };
  EXPECT_EQ(found(nullptr), &starAllToAll);
  EXPECT_EQ(found(&tuning), nullptr);
}

TEST(Tuning, EachPlaceHasItsOwnLines) {
  constexpr std::string_view text = "AllReduce node 2 0 - segments\nAllReduce network 2 0 - tree\n";
  const Tuning node = tuningOf(text, Extent::node), network = tuningOf(text, Extent::network);
  EXPECT_EQ(node.direct.size(), 1u);
  EXPECT_TRUE(node.algorithms.empty());
  EXPECT_EQ(chooseDirect(Operation::allReduce, 8, 2, &network), nullptr);
  EXPECT_EQ(&chooseAlgorithm(Operation::allReduce, 1 << 20, 2, PreferenceMasks::everything, &network), &treeAllReduce);
}

TEST(Tuning, NcclAlgoComesFirst) {
  const Tuning tuning = tuningOf("AllReduce node 2 0 - tree\n");
  EXPECT_EQ(&chooseAlgorithm(Operation::allReduce, 8, 8, algorithmBit("ring"), &tuning), &ringAllReduce);
}

struct BadLine {
  const char* line;
  const char* remedy;
};
class BadTuning : public testing::TestWithParam<BadLine> {};

TEST_P(BadTuning, IsRefusedWithTheLineAndTheRemedy) {
  const std::string text = std::string("AllReduce node 2 0 - flat\n# fine\n") + GetParam().line + "\n";
  for (const Extent extent : {Extent::node, Extent::network}) {
    const auto tuning = parseTuning(text, extent);
    ASSERT_FALSE(tuning);
    EXPECT_EQ(tuning.error().message().rfind("line 3: ", 0), 0u) << tuning.error().message();
    EXPECT_NE(tuning.error().message().find(GetParam().remedy), std::string::npos) << tuning.error().message();
  }
}

INSTANTIATE_TEST_SUITE_P(
    Lines, BadTuning,
    testing::Values(
        BadLine{"AllReduce node 2 0 -", "a line is"}, BadLine{"AllReduce node 2 0 - flat flat", "a line is"},
        BadLine{"allreduces node 2 0 - flat", "as in AllReduce"},
        BadLine{"AllReduce rack 2 0 - flat", "node or network"}, BadLine{"AllReduce node 1 0 - flat", "2 or more"},
        BadLine{"AllReduce node -2 0 - flat", "2 or more"}, BadLine{"AllReduce node 2 8K 8K flat", "4K 8M"},
        BadLine{"AllReduce node 2 1M 1K flat", "4K 8M"}, BadLine{"AllReduce node 2 - 1K flat", "4K 8M"},
        BadLine{"AllReduce node 2 0 1T flat", "4K 8M"}, BadLine{"AllReduce node 2 0 99999999999G flat", "4K 8M"},
        BadLine{"AllReduce node 2 0 - direct", "flat"}, BadLine{"AllReduce network 2 0 - flat", "ring, tree"},
        BadLine{"Gather network 2 0 - direct", "remove the line"}, BadLine{"Send node 2 0 - ring", "remove the line"},
        BadLine{"\x01\xff", "a line is"}));

}  // namespace
}  // namespace falcon::collectives
