// How elements, channels and algorithms are chosen.
#include <gtest/gtest.h>

#include "collectives/algorithm_choice.h"
#include "collectives/geometry.h"

namespace falcon::collectives {
namespace {

TEST(PartOf, PartsTouchCoverAndStayNearlyEqual) {
  for (const std::size_t total : {0, 1, 7, 16, 17, 63, 64, 65, 1000})
    for (const std::size_t parts : {1, 2, 3, 7, 8})
      for (const std::size_t grain : {1, 8, 64}) {
        std::size_t end = 5, most = 0, least = total;
        for (std::size_t part = 0; part < parts; ++part) {
          const Range range = partOf({5, 5 + total}, parts, part, grain);
          ASSERT_EQ(range.begin, end);
          ASSERT_LE(range.begin, range.end);
          if (!range.empty()) {
            ASSERT_EQ((range.begin - 5) % grain, 0u);
          }
          end = range.end;
          most = std::max(most, range.size());
          least = std::min(least, range.size());
        }
        ASSERT_EQ(end, 5 + total);
        ASSERT_LE(most - least, 2 * grain);
      }
}

TEST(ForEachChunk, VisitsEverythingOnceInOrder) {
  for (const std::size_t total : {0, 1, 9, 10, 11, 30}) {
    std::size_t end = 3;
    forEachChunk({3, 3 + total}, 10, [&](Range chunk) {
      EXPECT_EQ(chunk.begin, end);
      EXPECT_GT(chunk.size(), 0u);
      EXPECT_LE(chunk.size(), 10u);
      end = chunk.end;
    });
    EXPECT_EQ(end, 3 + total);
  }
}

TEST(AlgorithmChoice, EveryMessageOfEveryRingOperationHasAnAlgorithm) {
  for (const Operation operation :
       {Operation::allReduce, Operation::allGather, Operation::reduceScatter, Operation::broadcast, Operation::reduce})
    for (const int ranks : {1, 2, 3, 100})
      for (const Extent extent : {Extent::node, Extent::network})
        for (std::size_t bytes = 0; bytes < std::size_t{1} << 45; bytes = bytes * 3 + 1)
          EXPECT_NE(chooseAlgorithm(operation, bytes, ranks, PreferenceMasks::everything, nullptr, extent).appendRound,
                    nullptr);
}

TEST(AlgorithmChoice, TreesForSmallMessagesAmongMany) {
  EXPECT_EQ(&chooseAlgorithm(Operation::allReduce, 8, 8), &treeAllReduce);
  EXPECT_EQ(&chooseAlgorithm(Operation::allReduce, 8, 2), &ringAllReduce);
  EXPECT_EQ(&chooseAlgorithm(Operation::allReduce, 1 << 20, 8), &ringAllReduce);
}

TEST(AlgorithmChoice, FewHopsForLittleAndRingsForMuchBetweenNodes) {
  for (const int ranks : {2, 3, 4, 5, 8, 16, 17, 64, 1000}) {
    const auto choice = [&](Operation operation, std::size_t bytes) {
      return &chooseAlgorithm(operation, bytes, ranks, PreferenceMasks::everything, nullptr, Extent::network);
    };
    EXPECT_EQ(choice(Operation::allReduce, 8), ranks > 4 && ranks <= 16 ? &starAllReduce : &doublingAllReduce);
    EXPECT_EQ(choice(Operation::allReduce, 1 << 20), &ringAllReduce);
    EXPECT_EQ(choice(Operation::allGather, 1 << 20), &ringAllGather);
    EXPECT_EQ(choice(Operation::reduceScatter, 1 << 20), &ringReduceScatter);
  }
}

TEST(AlgorithmChoice, ChannelsStayWithinTheirBoundsAndGrowWithTheMessage) {
  for (const Extent extent : {Extent::node, Extent::network})
    for (const int ranks : {2, 3, 8}) {
      EXPECT_EQ(chooseChannels(0, ranks, 1, 4, extent), 1);
      EXPECT_EQ(chooseChannels(0, ranks, 3, 4, extent), 3);
      EXPECT_EQ(chooseChannels(std::size_t{1} << 40, ranks, 1, 4, extent), 4);
      EXPECT_EQ(chooseChannels(std::size_t{1} << 40, ranks, 8, 2, extent), 2);
      int before = 0;
      for (std::size_t bytes = 0; bytes < 1 << 24; bytes += 10'000) {
        const int channels = chooseChannels(bytes, ranks, 1, 64, extent);
        EXPECT_GE(channels, before);
        before = channels;
      }
    }
}

}  // namespace
}  // namespace falcon::collectives
