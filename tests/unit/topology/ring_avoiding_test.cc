#include "topology/ring_avoiding.h"

#include <gtest/gtest.h>

#include "topology/ring_order.h"
#include "unit/topology/shuffled_ring.h"

namespace falcon::topology {
namespace {

size_t newLinks(std::span<const Rank> before, std::span<const Rank> after) {
  const auto old = ringLinks(before);
  size_t count = 0;
  for (const Link& link : ringLinks(after)) count += std::count(old.begin(), old.end(), link) == 0;
  return count;
}

bool uses(std::span<const Rank> ring, std::span<const Link> slow) {
  for (const Link& link : ringLinks(ring))
    if (std::count(slow.begin(), slow.end(), link) > 0) return true;
  return false;
}

TEST(RingAvoiding, ChangesThreeLinksForOneSlowOne) {
  for (int size = 4; size <= 40; ++size) {
    const auto ring = shuffledRing(size);
    for (const Link& slow : ringLinks(ring)) {
      const std::vector<Link> bothWays{slow, {slow.to, slow.from}};
      const auto around = ringAvoiding(ring, bothWays);
      ASSERT_TRUE(around.has_value()) << size;
      EXPECT_EQ(sorted(*around), sorted(ring));
      EXPECT_EQ(around->front(), ring.front());
      EXPECT_FALSE(uses(*around, bothWays));
      // Four ranks have three rings either way round: two of them avoid the pair, and share fewer links.
      EXPECT_LE(newLinks(ring, *around), size == 4 ? 4u : 3u);
    }
  }
}

TEST(RingAvoiding, LeavesARingAloneThatDoesNotUseTheLink) {
  const std::vector<Rank> ring{0, 1, 2, 3};
  EXPECT_EQ(ringAvoiding(ring, std::vector<Link>{{0, 2}, {1, 0}}), ring);
  EXPECT_EQ(ringAvoiding(ring, {}), ring);
}

TEST(RingAvoiding, KnowsWhatIsImpossible) {
  EXPECT_FALSE(ringAvoiding(std::vector<Rank>{0, 1}, std::vector<Link>{{0, 1}}).has_value());
  EXPECT_FALSE(ringAvoiding(std::vector<Rank>{0, 1, 2}, std::vector<Link>{{0, 1}, {1, 0}}).has_value());
  EXPECT_EQ(ringAvoiding(std::vector<Rank>{0, 1, 2}, std::vector<Link>{{0, 1}}), (std::vector<Rank>{0, 2, 1}));
  for (int size = 4; size <= 20; ++size) {  // a rank that can send to nobody
    std::vector<Link> slow;
    for (Rank to = 1; to < size; ++to) slow.push_back({0, to});
    EXPECT_FALSE(ringAvoiding(shuffledRing(size), slow).has_value()) << size;
  }
}

TEST(RingAvoiding, FindsARingExactlyWhenBruteForceDoesAndChangesNoMore) {
  std::mt19937 random(11);
  for (int round = 0; round < 300; ++round) {
    const int size = 3 + static_cast<int>(random() % 4);
    const auto ring = shuffledRing(size, static_cast<unsigned>(round));
    std::vector<Link> slow(random() % 9);
    for (Link& link : slow) {
      link.from = static_cast<Rank>(random() % static_cast<unsigned>(size));
      link.to = (link.from + 1 + static_cast<Rank>(random() % static_cast<unsigned>(size - 1))) % size;
    }
    size_t fewest = ring.size() + 1;
    auto order = sorted(ring);
    do {
      if (!uses(order, slow)) fewest = std::min(fewest, newLinks(ring, order));
    } while (std::next_permutation(order.begin() + 1, order.end()));
    const auto around = ringAvoiding(ring, slow);
    ASSERT_EQ(around.has_value(), fewest <= ring.size());
    if (!around) continue;
    EXPECT_FALSE(uses(*around, slow));
    EXPECT_EQ(newLinks(ring, *around), fewest);
  }
}

TEST(RingAvoiding, CrossesNoMoreNodesThanNeeded) {
  // Four nodes of two ranks; the slow link leaves node 0. Swapping ranks inside a node is enough.
  const std::vector<int> nodes{0, 0, 1, 1, 2, 2, 3, 3};
  const auto ring = ringOrder(nodes);
  const auto around = ringAvoiding(ring, std::vector<Link>{{1, 2}, {2, 1}}, nodes);
  ASSERT_TRUE(around.has_value());
  size_t crossings = 0;
  for (const Link& link : ringLinks(*around))
    crossings += nodes[static_cast<size_t>(link.from)] != nodes[static_cast<size_t>(link.to)];
  EXPECT_EQ(crossings, 4u);
  EXPECT_FALSE(uses(*around, std::vector<Link>{{1, 2}, {2, 1}}));
}

TEST(RingAvoiding, AvoidsManySlowLinksInALargeRing) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    const auto ring = shuffledRing(64, seed);
    std::vector<Link> slow;
    for (const Link& link : ringLinks(ring))
      if ((static_cast<unsigned>(link.from) + seed) % 5 == 0)
        slow.push_back(link), slow.push_back({link.to, link.from});
    const auto around = ringAvoiding(ring, slow);
    ASSERT_TRUE(around.has_value());
    EXPECT_FALSE(uses(*around, slow));
    EXPECT_EQ(sorted(*around), sorted(ring));
  }
}

}  // namespace
}  // namespace falcon::topology
