// Which links of a group a validation tests, by what profiling saw.
#include "control/tested_groups.h"

#include <gtest/gtest.h>

#include <numeric>

#include "topology/binary_tree.h"

namespace falcon::control {
namespace {

constexpr Rank ranks = 8;
constexpr ProcessId processOf(Rank rank) {
  return 10 + static_cast<ProcessId>(rank);
}

struct TestedGroups : testing::Test {
  JobView job;

  TestedGroups() {
    CommunicatorFormed world{1, true, std::vector<Rank>(ranks), {}, {}, {}};
    std::iota(world.jobRanks.begin(), world.jobRanks.end(), 0);
    world.ring = world.firstRing = world.jobRanks;
    for (Rank rank = 0; rank < ranks; ++rank) {
      job.handle(processOf(rank), Introduce{rank, "host", "", "", 1});
      job.members()[processOf(rank)].transfers.iterations = 4;
    }
    job.handle(processOf(0), world);
  }

  void carry(Rank from, Rank to, double seconds = 1) {
    auto& sums = job.members()[processOf(from)].transfers.sums;
    sums.push_back({.id = 1, .peer = to, .sending = true, .bytes = 1000, .moving = seconds});
  }
  void carryOn(topology::TreeNode (*tree)(Rank, int)) {
    for (Rank rank = 0; rank < ranks; ++rank)
      if (const Rank up = tree(rank, ranks).up; up >= 0) carry(rank, up), carry(up, rank);
  }
  validate::TestedGroup tested() {
    diagnose::Suspicion suspects;
    suspects.groups = {{.communicator = 1, .slowest = {}}};
    const auto groups = testedGroups(job, suspects);
    EXPECT_EQ(groups.size(), 1u);
    return groups.at(0);
  }
};

TEST_F(TestedGroups, WhatGoesRoundTheRingNeedsNoMore) {
  for (Rank rank = 0; rank < ranks; ++rank) carry(rank, (rank + 1) % ranks);
  EXPECT_EQ(tested().trees, 0);
  EXPECT_TRUE(tested().pairs.empty());
}

TEST_F(TestedGroups, TreesThatCarriedSomethingAreTested) {
  carryOn(&topology::firstTree);
  EXPECT_EQ(tested().trees, 1);
  EXPECT_TRUE(tested().pairs.empty());
  carryOn(&topology::secondTree);
  EXPECT_EQ(tested().trees, 2);
  EXPECT_TRUE(tested().pairs.empty());
}

TEST_F(TestedGroups, WithoutAWholeProfileCollectivesMayHaveUsedBoth) {
  job.members()[processOf(3)].transfers.iterations = 0;
  EXPECT_EQ(tested().trees, 0);  // messages alone, as far as anybody said
  job.handle(processOf(0), Traffic{1, true, {}});
  EXPECT_EQ(tested().trees, 2);
  job.members()[processOf(3)].healthyTransfers.iterations = 12;
  EXPECT_EQ(tested().trees, 0);
}

TEST_F(TestedGroups, TheSlowestOtherPairOfEverySenderIsTestedToo) {
  for (Rank peer = 0; peer < ranks; ++peer)
    if (peer != 2) carry(2, peer, peer);
  carry(6, 3);
  EXPECT_EQ(tested().trees, 0);
  EXPECT_EQ(tested().pairs, (std::vector<Link>{{2, 7}, {6, 3}}));
}

TEST_F(TestedGroups, AnExchangeOfAllWithAllIsNotTestedAsAWhole) {
  for (Rank from = 0; from < ranks; ++from)
    for (Rank to = 0; to < ranks; ++to)
      if (from != to) carry(from, to, from == 5 && to == 1 ? 9 : 1);
  EXPECT_EQ(tested().trees, 0);
  EXPECT_EQ(tested().pairs.size(), static_cast<std::size_t>(ranks));
  EXPECT_EQ(tested().pairs.front(), (Link{5, 1})) << "the slowest is wanted most";
}

TEST_F(TestedGroups, WhatGrewIsWhatMovesLongerThanAsManyBytesDidInHealth) {
  auto& member = job.members()[processOf(2)];
  member.transfers.sums = {{.id = 1, .peer = 3, .sending = true, .bytes = 800, .moving = 0.8},
                           {.id = 1, .peer = 5, .sending = true, .bytes = 800, .moving = 0.8}};
  member.healthyTransfers = {.sums = {{.id = 1, .peer = 3, .sending = true, .bytes = 1600, .moving = 0.4}},
                             .iterations = 8};
  // The other end saw less of it.
  auto& receiver = job.members()[processOf(3)];
  receiver.transfers.sums = {{.id = 1, .peer = 2, .sending = false, .bytes = 800, .moving = 0.1}};
  receiver.healthyTransfers = {.sums = {{.id = 1, .peer = 2, .sending = false, .bytes = 800, .moving = 0.1}},
                               .iterations = 4};
  const auto grown = linkTimes(job).grown;
  ASSERT_EQ(grown.size(), 1u) << "of a connection without a healthy time nothing is known";
  EXPECT_NEAR(grown.at({2, 3}), 0.2 - 0.05, 1e-9);
}

}  // namespace
}  // namespace falcon::control
