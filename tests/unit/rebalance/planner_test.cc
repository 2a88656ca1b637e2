#include "rebalance/planner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
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

TEST(Planner, KeepsTheLimitsOfTheFramework) {
  JobFacts job = demoJob();
  job.secondsPerMicroBatch[2] = 2;
  job.limits.multiple = 2;  // an interleaved pipeline of two stages
  auto plans = plansFor(job, std::vector{slowRank(5)});
  ASSERT_EQ(plans.at(0).kind, PlanKind::splitMicroBatches);
  for (const int each : plans[0].microBatches) EXPECT_EQ(each % 2, 0);
  EXPECT_EQ(std::accumulate(plans[0].microBatches.begin(), plans[0].microBatches.end(), 0), 32);

  job.limits = {.most = {8, 0, 0, 9}};  // what memory has room for
  plans = plansFor(job, std::vector{slowRank(5)});
  ASSERT_EQ(plans.at(0).kind, PlanKind::splitMicroBatches);
  EXPECT_LE(plans[0].microBatches[0], 8);
  EXPECT_LE(plans[0].microBatches[3], 9);

  job.limits = {.evenOnly = true};
  plans = plansFor(job, std::vector{slowRank(5)});
  ASSERT_EQ(plans.at(0).kind, PlanKind::advise);
  EXPECT_NE(plans[0].reason.find("expert groups"), std::string::npos) << plans[0].reason;

  job.limits = {.most = {8, 8, 8, 8}};
  plans = plansFor(job, std::vector{slowRank(5)});
  EXPECT_EQ(plans.at(0).kind, PlanKind::none) << "no room for any other split";
  job.limits = {.most = {7, 8, 8, 8}};
  plans = plansFor(job, std::vector{slowRank(5)});
  ASSERT_EQ(plans.at(0).kind, PlanKind::advise);
  EXPECT_NE(plans[0].reason.find("do not fit"), std::string::npos) << plans[0].reason;
}

TEST(Planner, GivesThePipelineALinkThatCannotBeAvoidedAndMovesTheFewest) {
  JobFacts job;
  job.layout = topology::Layout{2, 2, 1};  // the gradients' rings 0-2 and 1-3 have no other way
  job.communicators = {ringOver(1, {0, 2}), ringOver(2, {1, 3})};
  job.rankAt = {0, 1, 2, 3};
  job.nodeOfPlace = {0, 1, 2, 3};
  job.volumes = {100, 10, 0};
  const std::vector culprits{slowLink(0, 2, true)};
  auto plans = plansFor(job, culprits);
  ASSERT_EQ(plans.size(), 1u);
  EXPECT_EQ(plans[0].kind, PlanKind::advise) << "nobody can carry it out";
  ASSERT_TRUE(plans[0].permutation);
  EXPECT_EQ(plans[0].permutation->moves.size(), 2u);
  EXPECT_EQ(plans[0].permutation->slowBytesBefore, 200);
  EXPECT_EQ(plans[0].permutation->slowBytesAfter, 0);
  EXPECT_EQ(plans[0].gain, 1);

  job.swapSeconds = 12;
  plans = plansFor(job, culprits);
  ASSERT_EQ(plans.at(0).kind, PlanKind::swap);
  EXPECT_EQ(plans[0].priceSeconds, 12);
  EXPECT_TRUE(plans[0].roles.empty()) << "nobody has roles to exchange";

  job.railOfRank = {1, 2, 1, 2};  // places of the same rail only: no exchange takes the two apart
  plans = plansFor(job, culprits);
  EXPECT_EQ(plans.at(0).kind, PlanKind::advise);
  EXPECT_FALSE(plans[0].permutation);
}

/// A communicator of everybody sends a few numbers straight over the link that the ring leaves.
JobFacts jobThatSendsNumbers() {
  JobFacts job = demoJob();
  job.swapSeconds = 1;
  job.roles = {0, 1, 2, 3, 4, 5, 6, 7};
  job.communicators.push_back(ringOver(3, {0, 1, 2, 3, 4, 5, 6, 7}));
  job.communicators.back().ringCollectives = false;
  job.communicators.back().pointToPoint = {{2, 4}};
  return job;
}

void putInForce(const Plan& reroute, JobFacts& job) {
  for (const auto& change : reroute.rings)
    for (auto& communicator : job.communicators)
      if (communicator.id == change.communicator) communicator.ring = change.order;
}

TEST(Planner, ExchangesRolesBehindAReRouteOnlyIfThatHelpsTooLittle) {
  JobFacts job = jobThatSendsNumbers();
  auto plans = plansFor(job, std::vector{slowLink(2, 4, false)});
  ASSERT_EQ(plans.size(), 2u);
  ASSERT_EQ(plans[0].kind, PlanKind::reroute);
  EXPECT_FALSE(plans[0].ifTooLittle);
  EXPECT_EQ(plans[1].kind, PlanKind::swap) << plans[1].reason;
  EXPECT_TRUE(plans[1].ifTooLittle);

  // Planned anew, for a host that is relieved meanwhile, say: the detour in force is still what was done before.
  putInForce(plans[0], job);
  plans = plansFor(job, std::vector{slowLink(2, 4, false)});
  ASSERT_EQ(plans.size(), 1u);
  EXPECT_EQ(plans[0].kind, PlanKind::swap) << plans[0].reason;
  EXPECT_TRUE(plans[0].ifTooLittle);
}

TEST(Planner, DoesNothingAboutAFewNumbersThatASlowLinkStillCarries) {
  JobFacts job = jobThatSendsNumbers();
  job.communicators.back().usual = {{{2, 4}, 100}};
  for (auto& communicator : job.communicators)
    if (communicator.ringCollectives)
      for (const Link& link : topology::ringLinks(communicator.ring)) communicator.usual[link] = 1e6;
  auto plans = plansFor(job, std::vector{slowLink(2, 4, false)});
  ASSERT_EQ(plans.size(), 1u) << plans[1].reason;
  ASSERT_EQ(plans[0].kind, PlanKind::reroute);
  putInForce(plans[0], job);
  plans = plansFor(job, std::vector{slowLink(2, 4, false)});
  ASSERT_EQ(plans.size(), 1u);
  EXPECT_EQ(plans[0].kind, PlanKind::none);
  EXPECT_EQ(plans[0].reason, "link 2 -> 4 is slow, but what goes over it now is little");

  job.communicators.back().usual = {{{2, 4}, 1e5}};  // as much as can hold somebody up
  plans = plansFor(job, std::vector{slowLink(2, 4, false)});
  EXPECT_EQ(plans.at(0).kind, PlanKind::swap) << plans[0].reason;
}

TEST(Planner, ExchangesRolesAndTakesThemBack) {
  JobFacts job;
  job.layout = topology::Layout{2, 2, 1};
  job.communicators = {ringOver(1, {0, 2}), ringOver(2, {1, 3})};
  job.rankAt = {0, 1, 2, 3};
  job.nodeOfPlace = {0, 1, 2, 3};
  job.volumes = {100, 10, 0};
  job.swapSeconds = 2;
  job.roles = {0, 1, 2, 3};
  const std::vector culprits{slowLink(0, 2, true)};
  const auto plans = plansFor(job, culprits);
  ASSERT_EQ(plans.at(0).kind, PlanKind::swap);
  const auto& roles = plans[0].roles;
  ASSERT_EQ(roles.size(), 4u);
  int moved = 0;
  for (std::size_t rank = 0; rank < 4; ++rank) moved += roles[rank] != static_cast<int>(rank) ? 1 : 0;
  EXPECT_EQ(moved, 2);
  EXPECT_EQ(plans[0].avoid, (std::vector<Link>{{0, 2}, {2, 0}}));
  EXPECT_EQ(std::abs(roles[0] - roles[2]) == 2, false) << "0 and 2 still share a stage";
  EXPECT_NE(plans[0].reason.find("exchange their roles"), std::string::npos) << plans[0].reason;
  EXPECT_TRUE(undoFor(job, {}).empty()) << "everybody has its own";

  // In force: whoever has a role is where it was.
  job.roles = roles;
  for (std::size_t rank = 0; rank < 4; ++rank)
    job.rankAt[static_cast<std::size_t>(roles[rank])] = static_cast<Rank>(rank);
  for (std::size_t place = 0; place < 4; ++place) job.nodeOfPlace[place] = job.rankAt[place];
  EXPECT_TRUE(undoFor(job, culprits).empty()) << "the link is slow still";
  const auto back = undoFor(job, {});
  ASSERT_EQ(back.size(), 1u);
  EXPECT_EQ(back[0].kind, PlanKind::swap);
  EXPECT_EQ(back[0].roles, (std::vector<int>{0, 1, 2, 3}));
  job.firstRoles = roles;
  EXPECT_TRUE(undoFor(job, {}).empty()) << "the program has exchanged them itself";

  job.deterministic = true;
  job.roles = {0, 1, 2, 3};
  EXPECT_NE(plansFor(job, culprits).at(0).kind, PlanKind::swap) << "other rings, other sums";
}

// By hand, of 8: 2+6 takes 2 + 2 * 2 and 1 + 6 seconds, 3+5 2 + 3 * 2 and 1 + 5. Without the fill they are equal.
TEST(Planner, SplitsByWhatPipelinesTakeToFillToo) {
  JobFacts job = demoJob();
  job.layout = topology::Layout{2, 4, 1};
  job.microBatches = 8;
  job.secondsPerMicroBatch = {2, 1};
  job.fillSeconds = {2, 1};
  auto plans = plansFor(job, std::vector{slowRank(1)});
  EXPECT_EQ(plans.at(0).microBatches, (std::vector<int>{2, 6}));
  EXPECT_NEAR(plans[0].gain, 1 - 7.0 / 10, 1e-9);
  job.fillSeconds = {};
  plans = plansFor(job, std::vector{slowRank(1)});
  EXPECT_NEAR(plans.at(0).gain, 1 - 6.0 / 8, 1e-9);
}

/// Two replicas of two stages whose link within a stage is slow: two ranks of a pipeline exchange their roles.
JobFacts jobThatCanExchange() {
  JobFacts job;
  job.layout = topology::Layout{2, 2, 1};
  job.communicators = {ringOver(1, {0, 2}), ringOver(2, {1, 3})};
  job.rankAt = job.nodeOfPlace = job.roles = {0, 1, 2, 3};
  job.volumes = {100, 10, 0};
  job.swapSeconds = 2;
  job.memoryLeft = {5e9, 5e9, 5e9, 5e9};
  job.memoryOfRole = {4e9, 4e9, 4e9, 4e9};
  return job;
}

TEST(Planner, ExchangesRolesWhereThereIsMemoryForThem) {
  JobFacts job = jobThatCanExchange();
  const std::vector culprits{slowLink(0, 2, true)};
  EXPECT_EQ(plansFor(job, culprits).at(0).kind, PlanKind::swap);
  job.memoryLeft[1] = 3.9e9;  // others can
  const auto plans = plansFor(job, culprits);
  ASSERT_EQ(plans.at(0).kind, PlanKind::swap) << plans[0].reason;
  EXPECT_EQ(plans[0].roles.at(1), 1);
  job.memoryLeft[1] = std::numeric_limits<double>::infinity();
  EXPECT_EQ(plansFor(job, culprits).at(0).kind, PlanKind::swap) << "nothing is known of it";
}

TEST(Planner, NamesMemoryWhereAnExchangeIsRefusedForIt) {
  JobFacts job = jobThatCanExchange();
  const std::vector culprits{slowLink(0, 2, true)};
  job.memoryLeft = {1e9, 1e9, 1e9, 1e9};
  auto plans = plansFor(job, culprits);
  ASSERT_EQ(plans.size(), 1u);
  EXPECT_EQ(plans[0].kind, PlanKind::advise);
  for (const char* words : {"memory is too little for a better order (ranks ", " exchange their roles): rank ",
                            " has 1000 MB left, and role ", " takes 4000 MB"})
    EXPECT_NE(plans[0].reason.find(words), std::string::npos) << plans[0].reason;
  job.restartSeconds = 9;
  plans = plansFor(job, culprits);
  EXPECT_EQ(plans.at(0).kind, PlanKind::restart);
  EXPECT_NE(plans[0].reason.find("memory is too little"), std::string::npos) << plans[0].reason;

  // Nothing moves while the job runs: a restart at other places frees the old state first.
  job.restartSeconds.reset();
  job.swapSeconds.reset();
  EXPECT_TRUE(plansFor(job, culprits).at(0).permutation);

  // Where no order is better, memory is not what is in the way.
  job.swapSeconds = 2;
  job.railOfRank = {1, 2, 1, 2};
  plans = plansFor(job, culprits);
  EXPECT_EQ(plans.at(0).reason.find("memory"), std::string::npos) << plans[0].reason;
}

TEST(Planner, NamesMemoryBehindASplitAndInItsPlace) {
  JobFacts job;
  job.layout = topology::Layout{2, 4, 1};
  job.communicators = {ringOver(1, {0, 4})};
  job.rankAt = job.nodeOfPlace = job.roles = {0, 1, 2, 3, 4, 5, 6, 7};
  job.microBatches = 8;
  job.secondsPerMicroBatch = {3, 1};
  job.timesAsLong = {{0, 3}, {3, 3}};
  job.swapSeconds = 2;
  job.memoryLeft.assign(8, 1e6);
  job.memoryOfRole.assign(8, 2e6);
  const std::vector culprits{slowRank(0), slowRank(3)};
  auto plans = plansFor(job, culprits);
  ASSERT_EQ(plans.size(), 2u);
  EXPECT_EQ(plans[0].kind, PlanKind::splitMicroBatches);
  EXPECT_EQ(plans[1].kind, PlanKind::advise);
  EXPECT_TRUE(plans[1].ifTooLittle);
  EXPECT_NE(plans[1].reason.find("a split helps too little; memory is too little"), std::string::npos)
      << plans[1].reason;
  job.limits.evenOnly = true;
  plans = plansFor(job, culprits);
  EXPECT_EQ(plans.at(0).kind, PlanKind::advise);
  EXPECT_NE(plans[0].reason.find("memory is too little"), std::string::npos) << plans[0].reason;
}

TEST(Planner, KeepsRolesThatThereIsNoMemoryToTakeBack) {
  JobFacts job = jobThatCanExchange();
  job.roles = {1, 0, 2, 3};
  EXPECT_EQ(undoFor(job, {}).at(0).kind, PlanKind::swap);
  job.memoryLeft[0] = 1e9;
  const auto plans = undoFor(job, {});
  ASSERT_EQ(plans.size(), 1u);
  EXPECT_EQ(plans[0].kind, PlanKind::advise);
  EXPECT_TRUE(plans[0].roles.empty());
  EXPECT_NE(plans[0].reason.find("rank 0 has 1000 MB left, and role 0 takes 4000 MB"), std::string::npos)
      << plans[0].reason;
}

TEST(Planner, PacksSlowRanksIntoOneStageWhereNoWorkCanBeMoved) {
  JobFacts job;
  job.layout = topology::Layout{2, 4, 1};
  job.communicators = {ringOver(1, {0, 4})};
  job.rankAt = {0, 1, 2, 3, 4, 5, 6, 7};
  job.nodeOfPlace = {0, 1, 2, 3, 4, 5, 6, 7};
  job.microBatches = 4;
  job.deterministic = true;
  job.secondsPerMicroBatch = {3, 1};
  job.timesAsLong = {{0, 3}, {3, 3}, {1, 1}, {7, 9}};  // 7 is nobody's culprit
  const std::vector culprits{slowRank(0), slowRank(3)};
  const auto plans = plansFor(job, culprits);
  ASSERT_EQ(plans.size(), 1u);
  ASSERT_TRUE(plans[0].permutation) << plans[0].reason;
  EXPECT_EQ(plans[0].permutation->before.slowStages, 2);
  EXPECT_EQ(plans[0].permutation->after.slowStages, 1);
  EXPECT_EQ(plans[0].permutation->after.outerStages, 0);
  EXPECT_GT(plans[0].gain, 0.1);
}

TEST(Planner, PacksSlowRanksBehindASplitThatHelpsTooLittle) {
  JobFacts job;
  job.layout = topology::Layout{2, 4, 1};
  job.communicators = {ringOver(1, {0, 4})};
  job.rankAt = job.nodeOfPlace = job.roles = {0, 1, 2, 3, 4, 5, 6, 7};
  job.microBatches = 8;
  job.secondsPerMicroBatch = {3, 1};
  job.timesAsLong = {{0, 3}, {3, 3}};
  job.swapSeconds = 2;
  job.restartSeconds = 40;
  const std::vector culprits{slowRank(0), slowRank(3)};
  for (const auto& split : {std::vector<int>{}, {2, 6}}) {  // not yet in force, in force
    job.microBatchesNow = split;
    const auto plans = plansFor(job, culprits);
    ASSERT_EQ(plans.size(), 3U);
    EXPECT_EQ(plans[0].kind, split.empty() ? PlanKind::splitMicroBatches : PlanKind::none);
    EXPECT_EQ(plans[1].kind, PlanKind::swap);
    EXPECT_TRUE(plans[1].ifTooLittle);
    EXPECT_EQ(plans[1].against, CulpritKind::rank);
    ASSERT_TRUE(plans[1].permutation);
    EXPECT_EQ(plans[1].permutation->after.slowStages, 1);
    EXPECT_EQ(plans[2].kind, PlanKind::restart);
  }
  job.swapSeconds.reset();
  EXPECT_EQ(plansFor(job, culprits).size(), 2U) << "what can only be said does not stand behind what is done";
}

TEST(Planner, HasARestartBehindEveryOtherRemedyWhereThereIsOne) {
  JobFacts job = demoJob();
  job.secondsPerMicroBatch[2] = 2;
  job.restartSeconds = 40;
  auto plans = plansFor(job, std::vector{slowRank(5), slowLink(3, 5), slowLink(1, 3)});
  ASSERT_EQ(plans.size(), 3u);
  EXPECT_EQ(plans[0].kind, PlanKind::splitMicroBatches);
  EXPECT_EQ(plans[1].kind, PlanKind::reroute);
  EXPECT_EQ(plans[2].kind, PlanKind::restart);
  EXPECT_TRUE(plans[2].ifTooLittle);
  EXPECT_EQ(plans[2].priceSeconds, 40);
  // All causes together: the slow rank is an end of one link; of the other, one end is enough.
  EXPECT_EQ(plans[2].leaveOut.size(), 2u);
  EXPECT_EQ(std::count(plans[2].leaveOut.begin(), plans[2].leaveOut.end(), 5), 1);

  // Two links with a common end: that one.
  plans = plansFor(job, std::vector{slowLink(3, 5), slowLink(1, 3)});
  EXPECT_EQ(plans.back().leaveOut, std::vector<Rank>{3});
  // Where nothing else helps, it is no afterthought.
  plans = plansFor(job, std::vector{slowLink(2, 3)});
  ASSERT_EQ(plans.size(), 1u);
  EXPECT_EQ(plans[0].kind, PlanKind::restart);
  EXPECT_FALSE(plans[0].ifTooLittle);
  job.layout.reset();
  plans = plansFor(job, std::vector{slowRank(5), slowRank(2)});
  ASSERT_EQ(plans.size(), 1u);
  EXPECT_EQ(plans[0].leaveOut, (std::vector<Rank>{2, 5}));
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

}  // namespace
}  // namespace falcon::rebalance
