// Which links are tested together.
#include "validate/link_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <set>

namespace falcon::validate {
namespace {

TestedGroup shuffledGroup(int size, std::uint64_t id, Rank firstJobRank, std::mt19937& random) {
  TestedGroup group{.id = id, .jobRanks = std::vector<Rank>(static_cast<std::size_t>(size)), .ring = {}};
  std::iota(group.jobRanks.begin(), group.jobRanks.end(), firstJobRank);
  group.ring.resize(static_cast<std::size_t>(size));
  std::iota(group.ring.begin(), group.ring.end(), 0);
  std::shuffle(group.jobRanks.begin(), group.jobRanks.end(), random);
  std::shuffle(group.ring.begin(), group.ring.end(), random);
  return group;
}

std::map<Rank, RankPlace> nodesOf(int ranks, int ranksPerNode, bool addressPerRank) {
  std::map<Rank, RankPlace> places;
  for (Rank rank = 0; rank < ranks; ++rank) {
    const auto node = std::to_string(rank / ranksPerNode);
    places[rank] = {"node" + node, addressPerRank ? "10.0.0." + std::to_string(rank) : "10.0.0." + node, "machine"};
  }
  return places;
}

std::vector<Link> flatten(const std::vector<Wave>& waves) {
  std::vector<Link> links;
  for (const Wave& wave : waves)
    for (const WaveLink& link : wave.links) links.push_back(link.link);
  std::sort(links.begin(), links.end());
  return links;
}

class LinkPlan : public testing::TestWithParam<int> {};

TEST_P(LinkPlan, TestsEveryLinkOfARingInBothDirectionsOnce) {
  std::mt19937 random(static_cast<unsigned>(GetParam()));
  const auto group = shuffledGroup(GetParam(), 1, 10, random);
  std::vector<Link> wanted;
  for (std::size_t i = 0; i < group.ring.size(); ++i) {
    const Rank from = group.jobRanks[static_cast<std::size_t>(group.ring[i])];
    const Rank to = group.jobRanks[static_cast<std::size_t>(group.ring[(i + 1) % group.ring.size()])];
    wanted.push_back({from, to});
    wanted.push_back({to, from});
  }
  std::sort(wanted.begin(), wanted.end());
  wanted.erase(std::unique(wanted.begin(), wanted.end()), wanted.end());
  const auto waves = planLinkTests({&group, 1}, {}, {}, 1);
  EXPECT_EQ(flatten(waves), wanted);
  for (const Wave& wave : waves)
    for (const WaveLink& link : wave.links) {
      EXPECT_EQ(group.jobRanks[static_cast<std::size_t>(link.from)], link.link.from);
      EXPECT_EQ(group.jobRanks[static_cast<std::size_t>(link.to)], link.link.to);
    }
}

TEST_P(LinkPlan, NoWaveUsesARankAnAddressOrTheCoresTwice) {
  std::mt19937 random(static_cast<unsigned>(GetParam()));
  const std::vector<TestedGroup> groups = {shuffledGroup(GetParam(), 1, 0, random),
                                           shuffledGroup(GetParam(), 2, 1, random)};
  for (const bool addressPerRank : {true, false}) {
    for (const int ends : {2, 4, 8}) {
      const auto places = nodesOf(GetParam() + 1, 3, addressPerRank);
      for (const Wave& wave : planLinkTests(groups, places, {.endsPerHost = ends}, 1)) {
        EXPECT_LE(2 * static_cast<int>(wave.links.size()), ends);
        std::set<Rank> ranks;
        std::multiset<std::string> addresses;
        std::set<bool> shared;
        for (const WaveLink& link : wave.links) {
          const auto &from = places.at(link.link.from), &to = places.at(link.link.to);
          EXPECT_TRUE(ranks.insert(link.link.from).second);
          EXPECT_TRUE(ranks.insert(link.link.to).second);
          shared.insert(from.node == to.node);
          if (from.node == to.node) continue;
          addresses.insert(from.address);
          addresses.insert(to.address);
        }
        EXPECT_EQ(shared.size(), 1u);
        for (const auto& address : addresses) EXPECT_EQ(addresses.count(address), 1u);
      }
    }
  }
}

TEST_P(LinkPlan, OnManyHostsTheNumberOfWavesDoesNotGrow) {
  std::mt19937 random(static_cast<unsigned>(GetParam()));
  const auto group = shuffledGroup(GetParam(), 1, 0, random);
  EXPECT_LE(planLinkTests({&group, 1}, {}, {}, 1).size(), 8u);
}
INSTANTIATE_TEST_SUITE_P(Sizes, LinkPlan, testing::Range(2, 34));

// Nobody has 16,384 ranks at hand; a plan for them is soon made. Each has an address and a node of its own.
class PassesOnPaper : public testing::TestWithParam<int> {};

std::size_t passesWith(int size, bool trees, int ranksPerAddress) {
  std::vector<TestedGroup> groups(1);
  groups[0].id = 1;
  groups[0].jobRanks.resize(static_cast<std::size_t>(size));
  std::iota(groups[0].jobRanks.begin(), groups[0].jobRanks.end(), 0);
  std::map<Rank, RankPlace> places;
  for (Rank rank = 0; rank < size; ++rank)
    places[rank] = {std::to_string(rank), std::to_string(rank / ranksPerAddress), std::to_string(rank)};
  const auto links = linksOf(groups, trees);
  const auto passes = passesOf(links, places);
  std::size_t placed = 0;
  for (const LinkPass& pass : passes) {
    std::set<std::string> addresses;
    for (const WaveLink& link : pass.links) {
      const bool within = places[link.link.from].address == places[link.link.to].address;
      EXPECT_TRUE(addresses.insert(places[link.link.from].address).second);
      EXPECT_TRUE(within || addresses.insert(places[link.link.to].address).second);
    }
    placed += pass.links.size();
  }
  EXPECT_EQ(placed, links.size());
  return passes.size();
}

// Both directions of 2 passes for an even ring and 3 for an odd one; of a ring and two trees, at most 5 links a rank.
TEST_P(PassesOnPaper, DoNotGrowWithTheRanks) {
  const int size = GetParam();
  EXPECT_EQ(passesWith(size, false, 1), size % 2 == 0 ? 4u : 6u);
  EXPECT_LE(passesWith(size, true, 1), 10u);
}

// Of a ring, an address of four ranks has three pairs within and one to each side.
TEST_P(PassesOnPaper, OverSharedAddressesDoNotEither) {
  EXPECT_LE(passesWith(GetParam(), false, 4), 10u);
  EXPECT_LE(passesWith(GetParam(), true, 4), 32u);
}
INSTANTIATE_TEST_SUITE_P(Sizes, PassesOnPaper, testing::Values(4, 5, 8, 16, 17, 32, 64, 65, 512, 4096, 16383, 16384));

TEST(LinkPlanDetails, APairOfTwoGroupsIsTestedOnce) {
  const TestedGroup groups[] = {{1, {0, 1}, {}}, {2, {1, 0, 2}, {}}};
  const auto waves = planLinkTests(groups, {}, {}, 1);
  EXPECT_EQ(flatten(waves), (std::vector<Link>{{0, 1}, {0, 2}, {1, 0}, {1, 2}, {2, 0}, {2, 1}}));
}

TEST(LinkPlanDetails, RunsRiseFromTheFirst) {
  const TestedGroup group{1, {0, 1, 2, 3, 4}, {}};
  std::uint64_t run = 77;
  for (const Wave& wave : planLinkTests({&group, 1}, {}, {}, 77)) EXPECT_EQ(wave.run, run++);
  EXPECT_GT(run, 78u);
}

TEST(LinkPlanDetails, GroupsThatMakeNoSenseHaveNoLinks) {
  for (const TestedGroup& group :
       {TestedGroup{1, {}, {}}, TestedGroup{1, {3}, {}}, TestedGroup{1, {3, 4}, {0, 0}}, TestedGroup{1, {3, 4}, {0, 7}},
        TestedGroup{1, {3, 4}, {0}}, TestedGroup{1, {-1, -1}, {}}})
    EXPECT_TRUE(planLinkTests({&group, 1}, {}, {}, 1).empty());
}

TEST(LinkPlanDetails, TreesAddTheirLinks) {
  for (int size = 2; size < 20; ++size) {
    TestedGroup group{1, std::vector<Rank>(static_cast<std::size_t>(size)), {}};
    std::iota(group.jobRanks.begin(), group.jobRanks.end(), 0);
    const auto ring = linksOf(group, false), both = linksOf(group, true);
    std::set<WaveLink> all(both.begin(), both.end());
    EXPECT_EQ(all.size(), both.size());
    for (const auto& link : ring) EXPECT_TRUE(all.contains(link));
    EXPECT_EQ(both.size() > ring.size(), size >= 4) << size;
  }
}

}  // namespace
}  // namespace falcon::validate
