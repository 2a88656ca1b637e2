#include "rebalance/node_permutation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <random>
#include <set>

#include "rebalance/placement.h"

namespace falcon::rebalance {
namespace {

using testing::HasSubstr;

PlacementFacts healthy(topology::Layout layout, int ranksOfNode = 1) {
  PlacementFacts facts{.layout = layout, .volumes = {100e6, 10e6, 1000e6}, .microBatches = 8};
  for (Rank place = 0; place < layout.size(); ++place) facts.nodeOfPlace.push_back(place / ranksOfNode);
  facts.timesAsLong.assign(facts.nodeOfPlace.size(), 1);
  return facts;
}

PlacementFacts random(std::mt19937& random, topology::Layout layout, int ranksOfNode, int slowRanks, int slowLinks) {
  PlacementFacts facts = healthy(layout, ranksOfNode);
  const int nodes = layout.size() / ranksOfNode;
  const auto below = [&](int limit) { return static_cast<int>(random() % static_cast<unsigned>(limit)); };
  for (int i = 0; i < slowRanks; ++i) facts.timesAsLong[static_cast<std::size_t>(below(layout.size()))] = 1 + below(3);
  for (int i = 0; i < slowLinks; ++i) {
    const int from = below(nodes), to = (from + 1 + below(nodes - 1)) % nodes;
    facts.slowLinks.push_back({from, to, 2.0 + below(4)});
  }
  return facts;
}

/// Of every order of the nodes, by a cost that is computed anew each time.
PlacementCost bestOfAll(const PlacementFacts& facts) {
  Placement placement(facts);
  std::vector<std::size_t> order(placement.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  PlacementCost best = placement.cost();
  do {
    placement.restore(order);
    if (placement.isPossible() && isBetter(placement.cost(), best)) best = placement.cost();
  } while (std::next_permutation(order.begin(), order.end()));
  return best;
}

void expectSame(const PlacementCost& one, const PlacementCost& other) {
  EXPECT_FALSE(isBetter(one, other) || isBetter(other, one))
      << one.seconds << " s, " << one.slowLinkSeconds << " s, " << one.slowStages << ", " << one.outerStages << ", "
      << one.moves << " and " << other.seconds << " s, " << other.slowLinkSeconds << " s, " << other.slowStages << ", "
      << other.outerStages << ", " << other.moves;
}

// The cost in the search's words, from the ranks' places in the result's.
PlacementCost costOf(const PlacementFacts& facts, const NodePermutation& permutation) {
  const auto after = placesAfter(facts.nodeOfPlace, permutation);
  PlacementFacts moved = facts;
  for (std::size_t place = 0; place < after.size(); ++place) {
    moved.nodeOfPlace[static_cast<std::size_t>(after[place])] = facts.nodeOfPlace[place];
    moved.timesAsLong[static_cast<std::size_t>(after[place])] = facts.timesAsLong[place];
  }
  PlacementCost cost = Placement(moved).cost();
  cost.moves = static_cast<int>(permutation.moves.size());
  return cost;
}

constexpr topology::Layout smallLayouts[] = {{2, 2, 1}, {4, 2, 1}, {2, 4, 1}, {2, 3, 1}, {7, 1, 1}, {1, 7, 1}};

TEST(NodePermutation, IsTheBestOfAllOrdersOfASmallJob) {
  std::mt19937 numbers(1);
  int better = 0;
  for (int round = 0; round < 60; ++round) {
    const auto layout = smallLayouts[numbers() % std::size(smallLayouts)];
    const auto facts = random(numbers, layout, 1, static_cast<int>(numbers() % 4), static_cast<int>(numbers() % 4));
    const auto found = permuteNodes(facts);
    ASSERT_TRUE(found);
    EXPECT_TRUE(found->exact);
    expectSame(found->after, bestOfAll(facts));
    expectSame(found->after, costOf(facts, *found));
    EXPECT_LE(found->atLeastSeconds, found->after.seconds * (1 + 1e-9));
    EXPECT_EQ(found->moves.empty(), !isBetter(found->after, found->before));
    better += !found->moves.empty();
  }
  EXPECT_GT(better, 20);
}

TEST(NodePermutation, BeyondTheExactLimitKeepsItsStatedBound) {
  std::mt19937 numbers(2);
  int best = 0, rounds = 0;
  double worst = 1;
  for (int round = 0; round < 60; ++round) {
    const auto layout = smallLayouts[numbers() % std::size(smallLayouts)];
    const auto facts =
        random(numbers, layout, 1, 1 + static_cast<int>(numbers() % 4), 1 + static_cast<int>(numbers() % 4));
    const auto found = permuteNodes(facts, 0);
    const auto exact = permuteNodes(facts);
    ASSERT_TRUE(found && exact);
    EXPECT_FALSE(found->exact);
    EXPECT_FALSE(isBetter(found->before, found->after));
    expectSame(found->after, costOf(facts, *found));
    // The bound: nothing is better than atLeastSeconds, so no order is further from the best than that says.
    EXPECT_LE(found->atLeastSeconds, exact->after.seconds * (1 + 1e-9));
    worst = std::max(worst, found->after.seconds / exact->after.seconds);
    best += found->after.seconds <= exact->after.seconds * (1 + 1e-9);
    ++rounds;
  }
  RecordProperty("worst", std::to_string(worst));
  EXPECT_LE(worst, 1.25);
  EXPECT_GE(best, rounds * 9 / 10);
}

TEST(NodePermutation, PacksSlowRanksIntoTheFewestInteriorStages) {
  std::mt19937 numbers(3);
  for (const std::size_t mostOrders : {mostExactOrders, std::size_t{0}})
    for (int slow = 1; slow <= 8; ++slow) {
      const topology::Layout layout{4, 6, 1};
      PlacementFacts facts = healthy(layout);
      std::vector<std::size_t> places(24);
      std::iota(places.begin(), places.end(), std::size_t{0});
      std::shuffle(places.begin(), places.end(), numbers);
      for (int i = 0; i < slow; ++i) facts.timesAsLong[places[static_cast<std::size_t>(i)]] = 2;
      const auto found = permuteNodes(facts, mostOrders);
      ASSERT_TRUE(found);
      EXPECT_EQ(found->after.slowStages, (slow + 3) / 4) << slow;  // ceil(slow ranks / ranks of a stage)
      EXPECT_EQ(found->after.outerStages, 0) << slow;
      // No pipeline has more of them than it must.
      EXPECT_DOUBLE_EQ(found->after.seconds, 6 + (slow + 3) / 4 + 7 * 2.0) << slow;
      EXPECT_DOUBLE_EQ(found->atLeastSeconds, 6 + 1 + 7 * 2.0);
      expectSame(found->after, costOf(facts, *found));
    }
}

TEST(NodePermutation, LeavesNothingOnSlowLinksWhereThereIsRoom) {
  std::mt19937 numbers(4);
  const topology::Layout layout{8, 8, 1};  // a place has four neighbours
  for (int round = 0; round < 30; ++round) {
    const auto facts = random(numbers, layout, 1, 0, 6);
    std::map<int, int> linksOf;
    for (const SlowNodeLink& link : facts.slowLinks) ++linksOf[link.from], ++linksOf[link.to];
    int most = 0;
    for (const auto& [node, links] : linksOf) most = std::max(most, links);
    ASSERT_GE(64, static_cast<int>(linksOf.size()) + 4 * most);
    const auto found = permuteNodes(facts);
    ASSERT_TRUE(found);
    EXPECT_FALSE(found->exact);
    EXPECT_EQ(found->slowBytesAfter, 0);
    EXPECT_DOUBLE_EQ(found->after.seconds, found->atLeastSeconds);
  }
}

TEST(NodePermutation, GivesASlowLinkToThePipelineWhereItMustCarrySomething) {
  // Two replicas of two stages on three nodes' worth of links: everybody is everybody's neighbour but one.
  PlacementFacts facts = healthy({2, 2, 1});
  for (const int from : {0, 1, 2, 3})
    for (const int to : {0, 1, 2, 3})
      if (from != to && !(from + to == 3)) facts.slowLinks.push_back({from, to, 4});  // all but 0-3 and 1-2
  // Both healthy pairs carry data: pipelines get the slow links.
  const auto found = permuteNodes(facts);
  ASSERT_TRUE(found);
  const auto after = placesAfter(facts.nodeOfPlace, *found);
  const auto replica = [&](int node) { return facts.layout.coordinatesOf(after[static_cast<std::size_t>(node)]).data; };
  EXPECT_NE(replica(0), replica(3));
  EXPECT_NE(replica(1), replica(2));
  EXPECT_LT(found->after.seconds, found->before.seconds);
}

TEST(NodePermutation, MovesTheFewestAndNobodyWithoutNeed) {
  PlacementFacts facts = healthy({4, 4, 1});
  EXPECT_TRUE(permuteNodes(facts)->moves.empty());
  facts.slowLinks = {{0, 5, 4}};  // no neighbours: it carries nothing
  EXPECT_TRUE(permuteNodes(facts)->moves.empty());
  facts.slowLinks = {{0, 4, 4}};
  EXPECT_EQ(permuteNodes(facts)->moves.size(), 2u);
  facts.volumes = {};
  EXPECT_TRUE(permuteNodes(facts)->moves.empty());
}

TEST(NodePermutation, KeepsSizesRailsAndMemory) {
  std::mt19937 numbers(5);
  for (int round = 0; round < 200; ++round) {
    auto facts = random(numbers, {3, 4, 1}, 1, 2, 2);
    for (Rank place = 0; place < 12; ++place) {
      facts.railOfPlace.push_back(static_cast<int>(numbers() % 2));
      facts.memoryOfRank.push_back(static_cast<double>(2 + numbers() % 2));
      facts.memoryOfPlace.push_back(static_cast<double>(1 + numbers() % 2));
    }
    facts.nodeOfPlace = {0, 0, 1, 2, 3, 3, 4, 5, 6, 6, 7, 8};
    std::erase_if(facts.slowLinks, [](const SlowNodeLink& link) { return link.from > 8 || link.to > 8; });
    const auto found = permuteNodes(facts, round % 2 == 0 ? mostExactOrders : 0);
    ASSERT_TRUE(found);
    const auto after = placesAfter(facts.nodeOfPlace, *found);
    EXPECT_EQ(std::set(after.begin(), after.end()).size(), after.size());
    for (std::size_t rank = 0; rank < after.size(); ++rank) {
      const auto place = static_cast<std::size_t>(after[rank]);
      EXPECT_EQ(facts.railOfPlace[rank], facts.railOfPlace[place]);
      if (place != rank) {
        EXPECT_GE(facts.memoryOfRank[rank], facts.memoryOfPlace[place]);
      }
    }
    // Ranks of a node stay together, wherever it goes.
    for (const auto& [node, other] : found->moves)
      EXPECT_EQ(std::count(facts.nodeOfPlace.begin(), facts.nodeOfPlace.end(), node),
                std::count(facts.nodeOfPlace.begin(), facts.nodeOfPlace.end(), other));
  }
}

// What a rank has left is for another place's state: its own is there already.
TEST(NodePermutation, WhoStaysNeedsNoMemory) {
  PlacementFacts facts = healthy({2, 4, 1});
  facts.timesAsLong[0] = facts.timesAsLong[5] = 3;
  facts.memoryOfRank.assign(8, 1);
  facts.memoryOfPlace.assign(8, 2);
  for (const std::size_t mostOrders : {mostExactOrders, std::size_t{0}}) {
    const auto found = permuteNodes(facts, mostOrders);
    ASSERT_TRUE(found);
    EXPECT_TRUE(found->moves.empty());
    EXPECT_DOUBLE_EQ(found->after.seconds, found->before.seconds);
    EXPECT_LE(found->atLeastSeconds, found->after.seconds);
  }
}

TEST(NodePermutation, NeverTearsTensorGroupsApart) {
  PlacementFacts facts = healthy({2, 2, 2}, 2);
  facts.slowLinks = {{0, 2, 4}, {2, 0, 4}};
  const auto found = permuteNodes(facts);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->moves.size(), 2u);
  EXPECT_EQ(found->slowBytesAfter, 0);
  const auto after = placesAfter(facts.nodeOfPlace, *found);
  for (std::size_t rank = 0; rank < after.size(); rank += 2) {
    EXPECT_EQ(after[rank] + 1, after[rank + 1]);
    EXPECT_EQ(after[rank] % 2, 0);
  }
}

TEST(NodePermutation, NamesWhatDoesNotFit) {
  PlacementFacts facts = healthy({2, 2, 1});
  facts.slowLinks = {{0, 7, 4}};
  EXPECT_THAT(permuteNodes(facts).error().message(), HasSubstr("a link from node 0 to node 7"));
  facts = healthy({2, 2, 1});
  facts.railOfPlace = {0};
  EXPECT_THAT(permuteNodes(facts).error().message(), HasSubstr("the rail is given for 1, but the layout has 4"));
  facts = healthy({2, 2, 1});
  facts.linkBytesPerSecond = 0;
  EXPECT_THAT(permuteNodes(facts).error().message(), HasSubstr("both must be positive"));
}

// By hand: 24 layers, hidden 1024, context 2048, micro-batches of 2, 8 of them; 2 stages, 4 shards.
TEST(Volumes, AreThePapers) {
  const auto volumes = volumesOf(
      {.layers = 24, .hidden = 1024, .context = 2048, .microBatch = 2, .microBatches = 8, .bytesPerGradient = 2},
      {4, 2, 4});
  EXPECT_DOUBLE_EQ(volumes.pipeline, 8.0 * 2 * 2048 * 1024);
  EXPECT_DOUBLE_EQ(volumes.data, 12.0 * 2 * 24 * 1024 * 1024 / 8);
  EXPECT_DOUBLE_EQ(volumes.tensor, 8.0 * 2 * 8 * 2048 * 1024 * 24 * 3 / 8);
}

}  // namespace
}  // namespace falcon::rebalance
