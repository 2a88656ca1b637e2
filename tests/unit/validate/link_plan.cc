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

std::map<Rank, RankSite> nodesOf(int ranks, int ranksPerNode, bool addressPerRank) {
  std::map<Rank, RankSite> sites;
  for (Rank rank = 0; rank < ranks; ++rank) {
    const auto node = std::to_string(rank / ranksPerNode);
    sites[rank] = {"node" + node, addressPerRank ? "10.0.0." + std::to_string(rank) : "10.0.0." + node, "machine"};
  }
  return sites;
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
      const auto sites = nodesOf(GetParam() + 1, 3, addressPerRank);
      for (const Wave& wave : planLinkTests(groups, sites, {.endsPerHost = ends}, 1)) {
        EXPECT_LE(2 * static_cast<int>(wave.links.size()), ends);
        std::set<Rank> ranks;
        std::multiset<std::string> addresses;
        std::set<bool> shared;
        for (const WaveLink& link : wave.links) {
          const auto &from = sites.at(link.link.from), &to = sites.at(link.link.to);
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
  groups[0].trees = trees ? 2 : 0;
  groups[0].jobRanks.resize(static_cast<std::size_t>(size));
  std::iota(groups[0].jobRanks.begin(), groups[0].jobRanks.end(), 0);
  std::map<Rank, RankSite> sites;
  for (Rank rank = 0; rank < size; ++rank)
    sites[rank] = {std::to_string(rank), std::to_string(rank / ranksPerAddress), std::to_string(rank)};
  const auto links = linksOf(groups);
  const auto addressesOf = [&](const WaveLink& link) {
    return std::pair(sites[link.link.from].address, sites[link.link.to].address);
  };
  std::set<std::pair<std::string, std::string>> wanted, tested;
  for (const WaveLink& link : links) wanted.insert(addressesOf(link));
  const auto passes = passesOf(links, sites);
  std::size_t between = 0;
  for (const LinkPass& pass : passes) {
    std::set<std::string> addresses;
    for (const WaveLink& link : pass.links) {
      const auto [from, to] = addressesOf(link);
      EXPECT_TRUE(addresses.insert(from).second);
      EXPECT_TRUE(from == to || addresses.insert(to).second);
      EXPECT_TRUE(tested.insert({from, to}).second || from == to || size <= 2 * ranksPerAddress);
      between += from != to;
    }
  }
  EXPECT_EQ(tested, wanted);
  EXPECT_EQ(between > 0, size > ranksPerAddress);
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
  EXPECT_LE(passesWith(GetParam(), true, 4), 26u);
}
INSTANTIATE_TEST_SUITE_P(Sizes, PassesOnPaper, testing::Values(4, 5, 8, 16, 17, 32, 64, 65, 512, 4096, 16383, 16384));

TEST(LinkPlanDetails, APairOfTwoGroupsIsTestedOnce) {
  const TestedGroup groups[] = {{1, {0, 1}, {}}, {2, {1, 0, 2}, {}}};
  const auto waves = planLinkTests(groups, {}, {}, 1);
  EXPECT_EQ(flatten(waves), (std::vector<Link>{{0, 1}, {0, 2}, {1, 0}, {1, 2}, {2, 0}, {2, 1}}));
}

// Three hosts of two ranks and one address each; groups of the first and of the second ranks.
TEST(LinkPlanDetails, APairOfAddressesIsTestedOnceEachWayByTheSameRanks) {
  const TestedGroup groups[] = {{1, {0, 2, 4}, {}}, {2, {1, 3, 5}, {2, 1, 0}}};
  std::map<Rank, RankSite> sites = nodesOf(6, 2, false);
  EXPECT_EQ(flatten(planLinkTests(groups, sites, {}, 1)),
            (std::vector<Link>{{0, 2}, {0, 4}, {2, 0}, {2, 4}, {4, 0}, {4, 2}}));
  // Only one way of the pair that was chosen: the other ranks test the way back.
  const std::vector<WaveLink> links = {{1, {0, 2}, 0, 1}, {2, {3, 1}, 1, 0}, {1, {2, 4}, 1, 2}, {2, {5, 3}, 2, 1}};
  EXPECT_EQ(flatten(planWaves(links, sites, {}, transport::Lane::test, 1)),
            (std::vector<Link>{{0, 2}, {2, 4}, {3, 1}, {5, 3}}));
  // Where nothing but the ranks tells links apart, all are tested.
  for (auto& [rank, place] : sites) place.address = "127.0.0.1";
  EXPECT_EQ(planLinkTests(groups, sites, {}, 1).size(), 12u);
  for (auto& [rank, place] : sites) place.address.clear();
  EXPECT_EQ(flatten(planLinkTests(groups, sites, {}, 1)).size(), 12u);
}

// The two directions between two hosts have nothing to be compared with but their like.
TEST(LinkPlanDetails, LinksThatHaveNoOthersToBeComparedWithStay) {
  const TestedGroup group{1, {0, 1, 2, 3}, {}};
  EXPECT_EQ(flatten(planLinkTests({&group, 1}, nodesOf(4, 2, false), {}, 1)),
            (std::vector<Link>{{0, 1}, {0, 3}, {1, 0}, {1, 2}, {2, 1}, {2, 3}, {3, 0}, {3, 2}}));
}

TEST(LinkPlanDetails, PairsBesideTheRingAreTestedBothWays) {
  TestedGroup group{1, {10, 11, 12, 13, 14}, {}};
  const std::size_t ring = linksOf(group).size();
  group.pairs = {{0, 2}, {0, 1}, {3, 3}, {4, 7}, {-1, 0}};
  const auto links = linksOf(group);
  ASSERT_EQ(links.size(), ring + 2);
  EXPECT_EQ(links[ring].link, (Link{10, 12}));
  EXPECT_EQ(links[ring + 1].link, (Link{12, 10}));
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
    const auto ring = linksOf(group);
    group.trees = 1;
    const auto one = linksOf(group);
    group.trees = 2;
    const auto both = linksOf(group);
    std::set<WaveLink> all(both.begin(), both.end());
    EXPECT_EQ(all.size(), both.size());
    for (const auto& link : one) EXPECT_TRUE(all.contains(link));
    EXPECT_TRUE(std::equal(ring.begin(), ring.end(), one.begin()));
    EXPECT_EQ(one.size() > ring.size(), size >= 4) << size;
    EXPECT_EQ(both.size() > one.size(), size >= 4) << size;
  }
}

}  // namespace
}  // namespace falcon::validate
