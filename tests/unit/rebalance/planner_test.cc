#include "rebalance/planner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "topology/ring_order.h"

namespace falcon::rebalance {
namespace {

Culprit slowRank(Rank rank) {
  return {CulpritKind::rank, rank, {}, false};
}
Culprit slowLink(Rank from, Rank to, bool bothWays = false) {
  return {CulpritKind::link, -1, {from, to}, bothWays};
}

CommunicatorFacts ringOver(CommunicatorId id, std::vector<Rank> members) {
  CommunicatorFacts facts;
  facts.id = id;
  facts.ring.resize(members.size());
  std::iota(facts.ring.begin(), facts.ring.end(), 0);
  facts.firstRing = facts.ring;
  facts.members = std::move(members);
  return facts;
}

/// The job of the demo: 4 replicas of 2 stages, two ranks a node.
JobFacts demoJob() {
  JobFacts job;
  job.layout = topology::Layout{4, 2, 1};
  job.communicators = {ringOver(1, {0, 2, 4, 6}), ringOver(2, {1, 3, 5, 7})};
  for (int d = 0; d < 4; ++d) {
    auto pipeline = ringOver(static_cast<CommunicatorId>(10 + d), {2 * d, 2 * d + 1});
    pipeline.ringCollectives = false;
    pipeline.pointToPoint = {{0, 1}, {1, 0}};
    job.communicators.push_back(pipeline);
  }
  job.rankAt = {0, 1, 2, 3, 4, 5, 6, 7};
  job.nodeOfPlace = {0, 0, 1, 1, 2, 2, 3, 3};
  job.volumes = {100, 10, 0};
  job.microBatches = 32;
  job.secondsPerMicroBatch = {1, 1, 1, 1};
  return job;
}

bool ringUses(const CommunicatorFacts& communicator, std::span<const Rank> ring, Link jobLink) {
  for (const Link& link : topology::ringLinks(ring))
    if (communicator.members[static_cast<size_t>(link.from)] == jobLink.from &&
        communicator.members[static_cast<size_t>(link.to)] == jobLink.to)
      return true;
  return false;
}

TEST(Planner, SplitsMicroBatchesForASlowRank) {
  JobFacts job = demoJob();
  job.secondsPerMicroBatch[2] = 2;
  const auto plans = plansFor(job, std::vector{slowRank(5)});
  ASSERT_EQ(plans.size(), 1u);
  EXPECT_EQ(plans[0].kind, PlanKind::splitMicroBatches);
  EXPECT_EQ(plans[0].microBatches, (std::vector<int>{10, 9, 5, 8}));
  EXPECT_NEAR(plans[0].gain, 1 - 10.0 / 16, 1e-9);
}

TEST(Planner, LeavesASplitThatIsAlreadyBest) {
  JobFacts job = demoJob();
  job.secondsPerMicroBatch[2] = 2;
  job.microBatchesNow = {10, 9, 4, 9};
  const auto plans = plansFor(job, std::vector{slowRank(5)});
  ASSERT_EQ(plans.size(), 1u);
  EXPECT_EQ(plans[0].kind, PlanKind::none);
  EXPECT_FALSE(plans[0].reason.empty());
}

TEST(Planner, RestartsWithoutASlowRankWhereNoWorkCanBeMoved) {
  JobFacts job = demoJob();
  job.restartSeconds = 90;
  EXPECT_EQ(plansFor(job, std::vector{slowRank(5)})[0].kind, PlanKind::none) << "a split comes first";
  job.layout = topology::Layout{1, 8, 1};
  const auto plans = plansFor(job, std::vector{slowRank(5)});
  ASSERT_EQ(plans.size(), 1u);
  EXPECT_EQ(plans[0].kind, PlanKind::restart);
  EXPECT_EQ(plans[0].leaveOut, std::vector<Rank>{5});
  EXPECT_EQ(plans[0].priceSeconds, 90);
  job.restartSeconds.reset();
  EXPECT_EQ(plansFor(job, std::vector{slowRank(5)})[0].kind, PlanKind::advise) << "nobody could be asked";
}

TEST(Planner, AdvisesWhereASplitIsNotPossible) {
  for (const auto& spoil : std::vector<void (*)(JobFacts&)>{
           [](JobFacts& job) { job.layout.reset(); }, [](JobFacts& job) { job.layout->dataSize = 1; },
           [](JobFacts& job) { job.microBatches = 3; }, [](JobFacts& job) { job.secondsPerMicroBatch.clear(); },
           [](JobFacts& job) { job.deterministic = true; }}) {
    JobFacts job = demoJob();
    spoil(job);
    const auto plans = plansFor(job, std::vector{slowRank(5)});
    ASSERT_EQ(plans.size(), 1u);
    EXPECT_EQ(plans[0].kind, PlanKind::advise);
  }
}

TEST(Planner, RoutesEveryRingAroundASlowLinkOneWayOrBoth) {
  const JobFacts job = demoJob();
  for (const bool bothWays : {false, true})
    for (const Link link : {Link{0, 2}, Link{2, 4}, Link{6, 0}, Link{3, 5}, Link{7, 1}}) {
      const auto plans = plansFor(job, std::vector{slowLink(link.from, link.to, bothWays)});
      ASSERT_EQ(plans.size(), 1u);
      EXPECT_EQ(plans[0].kind, PlanKind::reroute);
      ASSERT_EQ(plans[0].rings.size(), 1u);
      const auto& communicator = job.communicators[link.from % 2 == 0 ? 0 : 1];
      EXPECT_EQ(plans[0].rings[0].communicator, communicator.id);
      EXPECT_EQ(plans[0].rings[0].before, communicator.ring);
      EXPECT_FALSE(ringUses(communicator, plans[0].rings[0].order, link));
      if (bothWays) {
        EXPECT_FALSE(ringUses(communicator, plans[0].rings[0].order, {link.to, link.from}));
      }
    }
}

// The ranks of a node share its address, so the link between two nodes is slow for both stages.
TEST(Planner, RoutesTheRingsOfAllRanksAroundTheLinkBetweenTwoAddresses) {
  JobFacts job = demoJob();
  for (const bool known : {false, true}) {
    for (Rank rank = 0; rank < 8 && known; ++rank) job.addresses[rank] = std::string("10.0.0.") + char('0' + rank / 2);
    const auto plans = plansFor(job, std::vector{slowLink(0, 2)});
    ASSERT_EQ(plans.size(), 1u);
    ASSERT_EQ(plans[0].rings.size(), known ? 2u : 1u);
    EXPECT_FALSE(ringUses(job.communicators[0], plans[0].rings[0].order, {0, 2}));
    if (known) {
      EXPECT_FALSE(ringUses(job.communicators[1], plans[0].rings[1].order, {1, 3}));
    }
  }
  // One address for all: ranks are all that tells links apart.
  for (auto& [rank, address] : job.addresses) address = "127.0.0.1";
  EXPECT_EQ(plansFor(job, std::vector{slowLink(0, 2)}).at(0).rings.size(), 1u);
}

// Small all-reduces, AlltoAll, Gather and Scatter go straight to who receives them: no ring order helps them.
TEST(Planner, ClaimsAReRouteOnlyForBytesThatGoRoundTheRing) {
  JobFacts job = demoJob();
  const auto planWith = [&](double all, double aroundRing) {
    job.communicators[0].carried = {{{0, 1}, {all, aroundRing}}, {{1, 2}, {1e6, 1e6}}};
    return plansFor(job, std::vector{slowLink(0, 2)}).at(0);  // ranks 0 and 1 of the communicator
  };
  const Plan whole = planWith(1e6, 1e6);
  EXPECT_EQ(whole.kind, PlanKind::reroute);
  EXPECT_EQ(whole.reason.find('%'), std::string::npos) << whole.reason;
  const Plan most = planWith(1e6, 0.8e6);
  EXPECT_EQ(most.kind, PlanKind::reroute);
  EXPECT_NE(most.reason.find("80 % of the bytes of"), std::string::npos) << most.reason;
  const Plan little = planWith(1e6, 0.1e6);
  EXPECT_EQ(little.kind, PlanKind::advise);
  EXPECT_NE(little.reason.find("only 10 % of the bytes of"), std::string::npos) << little.reason;
  EXPECT_EQ(planWith(0, 0).kind, PlanKind::reroute) << "nothing was seen of it";
}

TEST(Planner, AvoidsAllSlowLinksTogether) {
  const JobFacts job = demoJob();
  const std::vector culprits{slowLink(0, 2), slowLink(0, 4)};
  const auto plans = plansFor(job, culprits);
  ASSERT_EQ(plans.size(), 1u);
  EXPECT_FALSE(ringUses(job.communicators[0], plans[0].rings[0].order, {0, 2}));
  EXPECT_FALSE(ringUses(job.communicators[0], plans[0].rings[0].order, {0, 4}));
}

TEST(Planner, KnowsThatSendsCannotBeRoutedAround) {
  const auto plans = plansFor(demoJob(), std::vector{slowLink(2, 3)});
  ASSERT_EQ(plans.size(), 1u);
  EXPECT_EQ(plans[0].kind, PlanKind::advise);
  EXPECT_NE(plans[0].reason.find("sends directly"), std::string::npos);
}

TEST(Planner, KnowsRingsThatHaveNoWayAround) {
  JobFacts job;
  job.communicators = {ringOver(1, {0, 1})};
  EXPECT_EQ(plansFor(job, std::vector{slowLink(0, 1)})[0].kind, PlanKind::advise);
  job.communicators = {ringOver(1, {0, 1, 2})};
  EXPECT_EQ(plansFor(job, std::vector{slowLink(0, 1)})[0].kind, PlanKind::reroute);
  EXPECT_EQ(plansFor(job, std::vector{slowLink(0, 1, true)})[0].kind, PlanKind::advise);
  job.deterministic = true;
  EXPECT_EQ(plansFor(job, std::vector{slowLink(0, 1)})[0].kind, PlanKind::advise);
}

TEST(Planner, DoesNothingAboutALinkThatNobodyUses) {
  const auto plans = plansFor(demoJob(), std::vector{slowLink(0, 4)});
  ASSERT_EQ(plans.size(), 1u);
  EXPECT_EQ(plans[0].kind, PlanKind::none);
  EXPECT_TRUE(plansFor(demoJob(), {}).empty());
}

TEST(Planner, HandlesARankAndALinkTogether) {
  JobFacts job = demoJob();
  job.secondsPerMicroBatch[0] = 3;
  const auto plans = plansFor(job, std::vector{slowLink(3, 5), slowRank(1)});
  ASSERT_EQ(plans.size(), 2u);
  EXPECT_EQ(plans[0].kind, PlanKind::splitMicroBatches);
  EXPECT_EQ(plans[1].kind, PlanKind::reroute);
}

TEST(Undo, TakesBackWhatNoLongerPaysAndOnlyThat) {
  JobFacts job = demoJob();
  EXPECT_TRUE(undoFor(job, {}).empty());
  job.microBatchesNow = {10, 9, 4, 9};
  job.communicators[0].ring = {0, 2, 1, 3};

  const auto all = undoFor(job, {});
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].microBatches, (std::vector<int>{8, 8, 8, 8}));
  ASSERT_EQ(all[1].rings.size(), 1u);
  EXPECT_EQ(all[1].rings[0].order, (std::vector<Rank>{0, 1, 2, 3}));
  EXPECT_EQ(all[1].rings[0].before, (std::vector<Rank>{0, 2, 1, 3}));

  const auto stillSlowLink = undoFor(job, std::vector{slowLink(0, 2)});
  ASSERT_EQ(stillSlowLink.size(), 1u);
  EXPECT_EQ(stillSlowLink[0].kind, PlanKind::splitMicroBatches);
  const auto stillSlowRank = undoFor(job, std::vector{slowRank(4)});
  ASSERT_EQ(stillSlowRank.size(), 1u);
  EXPECT_EQ(stillSlowRank[0].kind, PlanKind::reroute);
}

TEST(TopologySwap, GivesTheSlowLinkToThePipeline) {
  // Four nodes of one rank: two replicas of two stages, 0-1 and 2-3; the rings of the gradients are 0-2 and 1-3.
  const topology::Layout layout{2, 2, 1};
  const std::vector<int> nodes{0, 1, 2, 3};
  const auto swap = swapForLink(layout, nodes, {0, 2}, true, {100, 10, 0});
  ASSERT_TRUE(swap.has_value());
  EXPECT_EQ(swap->bytesBefore, 200);
  EXPECT_LT(swap->bytesAfter, 200);
  // The best that two nodes' exchange can do: nothing on the link, or the pipeline's both ways.
  EXPECT_LE(swap->bytesAfter, 20);
}

TEST(TopologySwap, LeavesALinkThatCarriesNothing) {
  EXPECT_FALSE(
      swapForLink(topology::Layout{2, 2, 1}, std::vector<int>{0, 1, 2, 3}, {0, 3}, true, {100, 10, 0}).has_value());
  EXPECT_FALSE(swapForLink(topology::Layout{2, 2, 1}, std::vector<int>{0, 1, 2, 3}, {0, 2}, true, {}).has_value());
}

TEST(TopologySwap, NeverTearsTensorGroupsApart) {
  // Nodes of two ranks; tensor groups of two lie inside the nodes, and any swap of whole nodes keeps them there.
  const topology::Layout layout{2, 2, 2};
  const std::vector<int> nodes{0, 0, 1, 1, 2, 2, 3, 3};
  const auto swap = swapForLink(layout, nodes, {0, 2}, false, {100, 10, 1000});
  ASSERT_TRUE(swap.has_value());
  EXPECT_LE(swap->bytesAfter, 20);
  // Exchanging the two ends themselves changes nothing.
  EXPECT_FALSE(swapForLink(topology::Layout{2, 1, 1}, std::vector<int>{0, 1}, {0, 1}, true, {100, 10, 0}).has_value());
}

}  // namespace
}  // namespace falcon::rebalance
