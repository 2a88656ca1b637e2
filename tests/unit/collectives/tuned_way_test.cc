// What a tuner is offered, and what its answer means.
#include "collectives/tuned_way.h"

#include <gtest/gtest.h>

#include "collectives/algorithm_choice.h"

namespace falcon::collectives {
namespace {

using plugin::CostTable;
using plugin::protocolSimple;
using plugin::ringAlgorithm;
using plugin::treeAlgorithm;

const MemberShape shape{.rank = 0, .size = 8, .fewestChannels = 1, .mostChannels = 4, .extent = Extent::network};
const Call allReduce{.operation = Operation::allReduce, .type = DataType::f32, .count = 1 << 20};

struct Offered {
  explicit Offered(const Call& call, const MemberShape& of = shape) : tuned(costsOf(of, call, costs)) {}
  CostTable costs;
  bool tuned;
};

int countOf(const CostTable& costs) {
  int count = 0;
  for (const auto& row : costs)
    for (const float cost : row) count += cost >= 0 ? 1 : 0;
  return count;
}

TEST(TunedWay, RingAndTreeWithSimpleAreOffered) {
  const Offered sum(allReduce);
  ASSERT_TRUE(sum.tuned);
  EXPECT_EQ(countOf(sum.costs), 2);
  EXPECT_GT(sum.costs[ringAlgorithm][protocolSimple], 0);
  EXPECT_GT(sum.costs[treeAlgorithm][protocolSimple], sum.costs[ringAlgorithm][protocolSimple]) << "4 MiB";
  for (const Operation operation :
       {Operation::allGather, Operation::reduceScatter, Operation::broadcast, Operation::reduce}) {
    const Offered other(Call{.operation = operation, .count = 100});
    ASSERT_TRUE(other.tuned);
    EXPECT_EQ(countOf(other.costs), 1);
    EXPECT_GT(other.costs[ringAlgorithm][protocolSimple], 0);
  }
  for (const Operation operation : {Operation::send, Operation::receive, Operation::allToAll, Operation::gather})
    EXPECT_FALSE(Offered(Call{.operation = operation, .count = 100}).tuned);
}

TEST(TunedWay, NcclAlgoComesFirst) {
  MemberShape onlyTree = shape;
  onlyTree.preferred.of[static_cast<std::size_t>(Operation::allReduce)] = 1U << treeAlgorithm;
  const Offered sum(allReduce, onlyTree);
  EXPECT_EQ(countOf(sum.costs), 1);
  EXPECT_GT(sum.costs[treeAlgorithm][protocolSimple], 0);
}

TEST(TunedWay, TheLeastCostActsAsNcclAlgoDoes) {
  const Offered sum(allReduce);
  for (const int algorithm : {ringAlgorithm, treeAlgorithm}) {
    Offered tuned(allReduce);
    tuned.costs[algorithm][protocolSimple] = 0;
    const TunedWay way = wayOf(sum.costs, tuned.costs, 0, 4);
    EXPECT_TRUE(way.choosesAlgorithm());
    const Way chosen = chooseWay(shape, allReduce, way);
    EXPECT_EQ(chosen.algorithm, algorithm == ringAlgorithm ? &ringAllReduce : &treeAllReduce);
  }
}

TEST(TunedWay, ATableThatIsAsItWasChoosesNothing) {
  const Offered sum(allReduce);
  const TunedWay way = wayOf(sum.costs, sum.costs, 0, 4);
  EXPECT_FALSE(way.choosesAlgorithm());
  const Way usual = chooseWay(shape, allReduce), chosen = chooseWay(shape, allReduce, way);
  EXPECT_EQ(chosen.algorithm, usual.algorithm);
  EXPECT_EQ(chosen.channels, usual.channels);
}

TEST(TunedWay, WhatWasNotOfferedIsNeverChosen) {
  const Offered sum(allReduce);
  Offered tuned(allReduce);
  tuned.costs[plugin::nvls][protocolSimple] = 0;
  tuned.costs[ringAlgorithm][plugin::protocolLl] = 0;
  EXPECT_FALSE(wayOf(sum.costs, tuned.costs, 0, 4).choosesAlgorithm());
}

TEST(TunedWay, NothingLeftMeansNoChoice) {
  const Offered sum(allReduce);
  Offered tuned(allReduce);
  for (auto& row : tuned.costs) std::fill(std::begin(row), std::end(row), plugin::ignoredCost);
  EXPECT_FALSE(wayOf(sum.costs, tuned.costs, 0, 4).choosesAlgorithm());
}

TEST(TunedWay, ChannelsAreWhatTheCommunicatorHasAtMost) {
  const Offered sum(allReduce);
  EXPECT_EQ(chooseWay(shape, allReduce, wayOf(sum.costs, sum.costs, 3, 4)).channels, 3);
  EXPECT_EQ(chooseWay(shape, allReduce, wayOf(sum.costs, sum.costs, 30, 4)).channels, 4);
}

}  // namespace
}  // namespace falcon::collectives
