#include <gtest/gtest.h>

#include "topology/ring_order.h"
#include "topology/ring_passes.h"
#include "unit/topology/shuffled_ring.h"

namespace falcon::topology {
namespace {

TEST(RingOrder, KeepsRanksOfANodeTogetherInTheOrderOfFirstAppearance) {
  EXPECT_EQ(ringOrder(std::vector<int>{7, 3, 7, 3, 9}), (std::vector<Rank>{0, 2, 1, 3, 4}));
  EXPECT_EQ(ringOrder(std::vector<int>{}), std::vector<Rank>{});
}

TEST(RingOrder, EntersEveryNodeOnce) {
  std::mt19937 random(5);
  for (int size = 1; size <= 64; ++size) {
    std::vector<int> nodes(static_cast<size_t>(size));
    for (int& node : nodes) node = static_cast<int>(random() % 7);
    const auto ring = ringOrder(nodes);
    const auto ranks = shuffledRing(size);
    EXPECT_EQ(sorted(ring), sorted(ranks));
    EXPECT_EQ(ring.front(), 0);
    size_t entries = 0;
    for (const Link& link : ringLinks(ring))
      entries += nodes[static_cast<size_t>(link.from)] != nodes[static_cast<size_t>(link.to)];
    const size_t count = std::set<int>(nodes.begin(), nodes.end()).size();
    EXPECT_EQ(entries, count == 1 ? 0 : count) << size;
  }
}

TEST(RingLinks, OfOneRankAreNone) {
  EXPECT_TRUE(ringLinks(std::vector<Rank>{4}).empty());
  EXPECT_EQ(ringLinks(std::vector<Rank>{4, 2}), (std::vector<Link>{{4, 2}, {2, 4}}));
}

class RingPasses : public testing::TestWithParam<int> {};

TEST_P(RingPasses, CoverEveryLinkOnceAndNeverUseARankTwiceInAPass) {
  const auto ring = shuffledRing(GetParam());
  const auto passes = ringPasses(ring);
  EXPECT_EQ(passes.size(), GetParam() % 2 == 0 ? 2u : 3u);
  EXPECT_EQ(sorted(joined(passes)), sorted(ringLinks(ring)));
  for (const Pass& pass : passes) EXPECT_TRUE(disjoint(pass));
}
INSTANTIATE_TEST_SUITE_P(Sizes, RingPasses, testing::Range(2, 34));

TEST(RingPassesOfOne, AreNone) {
  EXPECT_TRUE(ringPasses(std::vector<Rank>{0}).empty());
}

}  // namespace
}  // namespace falcon::topology
