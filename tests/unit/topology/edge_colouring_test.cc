#include <gtest/gtest.h>

#include <map>

#include "topology/edge_colouring.h"
#include "topology/ring_order.h"
#include "unit/topology/shuffled_ring.h"

namespace falcon::topology {
namespace {

void expectLegal(std::span<const Link> links, std::span<const int> resources, int capacity,
                 const std::vector<Wave>& waves) {
  auto indices = joined(waves);
  std::vector<size_t> all(links.size());
  std::iota(all.begin(), all.end(), 0);
  EXPECT_EQ(sorted(indices), all);
  for (const Wave& wave : waves) {
    std::vector<Link> chosen;
    std::map<int, int> uses;
    std::set<int> within;  // resources that one link uses at both ends
    for (const size_t index : wave) {
      chosen.push_back(links[index]);
      if (resources.empty()) continue;
      const int from = resources[static_cast<size_t>(links[index].from)];
      const int to = resources[static_cast<size_t>(links[index].to)];
      ++uses[from];
      ++uses[to];
      if (from == to) within.insert(from);
    }
    EXPECT_FALSE(wave.empty());
    EXPECT_TRUE(disjoint(chosen));
    for (const auto& [resource, count] : uses)
      EXPECT_LE(count, within.contains(resource) ? std::max(capacity, 2) : capacity) << resource;
  }
}

TEST(LinkWaves, OfARingAreAsFewAsItsPasses) {
  for (int size = 2; size < 40; ++size) {
    const auto links = ringLinks(shuffledRing(size));
    const auto waves = linkWaves(links, {}, 1);
    expectLegal(links, {}, 1, waves);
    EXPECT_EQ(waves.size(), size % 2 == 0 ? 2u : 3u) << size;
  }
}

TEST(LinkWaves, OfGroupsThatShareNobodyRunTogether) {
  // Four pipelines of two stages and two data-parallel rings of four: every rank has one link each way in both.
  std::vector<Link> links;
  for (Rank d = 0; d < 4; ++d) links.push_back({2 * d, 2 * d + 1}), links.push_back({2 * d + 1, 2 * d});
  for (Rank s = 0; s < 2; ++s)
    for (const Link& link : ringLinks(std::vector<Rank>{s, 2 + s, 4 + s, 6 + s})) links.push_back(link);
  const auto waves = linkWaves(links, {}, 1);
  expectLegal(links, {}, 1, waves);
  EXPECT_EQ(waves.size(), 4u);
}

TEST(LinkWaves, KeepToTheCapacityOfSharedResources) {
  std::mt19937 random(3);
  for (int round = 0; round < 200; ++round) {
    const int ranks = 2 + static_cast<int>(random() % 15), capacity = 1 + static_cast<int>(random() % 4);
    std::vector<int> resources(static_cast<size_t>(ranks));
    for (int& resource : resources) resource = static_cast<int>(random() % 4);
    std::vector<Link> links(random() % 40);
    for (Link& link : links) {
      link.from = static_cast<Rank>(random() % static_cast<unsigned>(ranks));
      link.to = (link.from + 1 + static_cast<Rank>(random() % static_cast<unsigned>(ranks - 1))) % ranks;
    }
    const auto waves = linkWaves(links, resources, capacity);
    expectLegal(links, resources, capacity, waves);
    // Greedy bound: a link meets at most 2 (degree - 1) links at its ranks and fills up behind its two resources.
    std::map<Rank, size_t> degree;
    std::map<int, size_t> load;
    for (const Link& link : links) {
      ++degree[link.from], ++degree[link.to];
      ++load[resources[static_cast<size_t>(link.from)]], ++load[resources[static_cast<size_t>(link.to)]];
    }
    size_t mostDegree = 0, mostLoad = 0;
    for (const auto& [rank, count] : degree) mostDegree = std::max(mostDegree, count);
    for (const auto& [resource, count] : load) mostLoad = std::max(mostLoad, count);
    EXPECT_LE(waves.size(), 2 * mostDegree + 2 * mostLoad);
  }
}

TEST(LinkWaves, PutOneAfterTheOtherWhatSharesOneAddress) {
  const std::vector<Link> links{{0, 2}, {1, 3}};
  EXPECT_EQ(linkWaves(links, std::vector<int>{0, 0, 1, 2}, 1).size(), 2u);
  EXPECT_EQ(linkWaves(links, std::vector<int>{0, 0, 1, 2}, 2).size(), 1u);
  EXPECT_EQ(linkWaves(std::vector<Link>{{0, 1}}, std::vector<int>{0, 0}, 1).size(), 1u);
  // A link between ranks of one address has nothing to do with links elsewhere.
  EXPECT_EQ(linkWaves(std::vector<Link>{{0, 1}, {2, 3}, {4, 5}}, std::vector<int>{0, 0, 1, 1, 2, 3}, 1).size(), 1u);
  EXPECT_TRUE(linkWaves({}, {}, 1).empty());
}

}  // namespace
}  // namespace falcon::topology
