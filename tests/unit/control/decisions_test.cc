#include "control/decisions.h"

#include <gtest/gtest.h>

#include <set>

#include "control/peers.h"

namespace falcon::control {
namespace {

/// Two replicas of two stages, two ranks a node; all healthy at 10 ms a micro-batch, 8 of 16 each.
JobView healthyJob() {
  JobView job;
  const auto formed = [](CommunicatorId id, std::vector<Rank> members) {
    CommunicatorFormed communicator{id, true, members, {}, {}, {}};
    for (std::size_t i = 0; i < members.size(); ++i) {
      communicator.nodes.push_back(members[i] < 2 ? "a" : "b");
      communicator.ring.push_back(static_cast<Rank>(i));
    }
    communicator.firstRing = communicator.ring;
    return communicator;
  };
  for (Rank rank = 0; rank < 4; ++rank) {
    const ProcessId process = 10 + static_cast<ProcessId>(rank);
    job.handle(process, Introduce{rank, "host", "", "", 1});
    job.handle(process, PartKnown{2, 2, 1, rank / 2, rank % 2, 0, 16, {}});
    for (int i = 0; i < 4; ++i)
      job.handle(process, Samples{{{.index = i, .seconds = 0.1, .outside = 0.08, .microBatches = 8}}});
    auto& member = job.members()[process];
    member.healthy = JobView::means(member, 4);
  }
  job.handle(10, formed(1, {0, 1, 2, 3}));
  job.handle(10, formed(2, {0, 2}));
  job.handle(11, formed(3, {1, 3}));
  return job;
}

TEST(Decisions, CompareRanksPerMicroBatch) {
  JobView job = healthyJob();
  // A split of ours gives rank 0 half the work: it is as fast as before.
  for (int i = 0; i < 4; ++i)
    job.handle(10, Samples{{{.index = 9 + i, .seconds = 0.1, .outside = 0.04, .microBatches = 4}}});
  const auto comparisons = comparisonsOf(job, 4);
  ASSERT_EQ(comparisons.size(), 4u);
  EXPECT_NEAR(comparisons[0].now.own, comparisons[0].healthy.own, 1e-9);
  EXPECT_NEAR(comparisons[0].healthy.own + comparisons[0].healthy.inLibrary, 0.1, 1e-9);
  EXPECT_NEAR(*ownTimeGrowth(job.members().at(10), 4), 1, 1e-9);
}

TEST(Decisions, SayNothingOfWhoHasNoBaseline) {
  JobView job = healthyJob();
  job.members()[11].healthy.reset();
  EXPECT_EQ(comparisonsOf(job, 4).size(), 3u);
  EXPECT_FALSE(ownTimeGrowth(job.members().at(11), 4).has_value());
}

/// Iterations of that length, of which `inCall` in one call of communicator 1, as a profile has them.
std::vector<instrument::TimelineCall> profiled(Nanoseconds iteration, Nanoseconds inCall, int everyNth = 1) {
  std::vector<instrument::TimelineCall> calls;
  for (int i = 0; i < 12; i += everyNth) {
    instrument::TimelineCall call;
    call.communicator = 1;
    call.enter = i * iteration + (iteration - inCall);
    call.leave = (i + 1) * iteration;
    calls.push_back(call);
  }
  return calls;
}

// The vendor's calls end when they have launched.
TEST(Decisions, OwnTimesThatSamplesDoNotTellAreThoseOfTheProfile) {
  JobView job = healthyJob();
  for (auto& [process, member] : job.members()) {
    member.healthy->outside = member.healthy->outsidePerMicroBatch = Sample::unknownOutside;
    member.healthyCalls = profiled(100ms, 40ms);
    // Rank 1 takes 60 ms longer, and the others wait for it.
    member.calls = process == 11 ? profiled(160ms, 40ms) : profiled(160ms, 100ms);
    for (int i = 0; i < 4; ++i) job.handle(process, Samples{{{.index = 9 + i, .seconds = 0.16, .microBatches = 8}}});
  }
  for (const auto& [process, member] : job.members()) {
    EXPECT_FALSE(ownTimeGrowth(member, 4).has_value()) << "iterations as they come do not tell";
    EXPECT_NEAR(ownTimeGrowth(member, 4, OwnTime::alsoInProfile).value_or(-1), process == 11 ? 2 : 1, 0.01);
    const double usual = usualGrowth(job, 4, OwnTime::alsoInProfile);
    EXPECT_NEAR(shareOfDelay(member, 4, delayOf(job, 4), usual).value_or(-1), process == 11 ? 1 : 0, 0.01);
  }
  const auto comparisons = comparisonsOf(job, 4);
  ASSERT_EQ(comparisons.size(), 4u);
  EXPECT_NEAR(comparisons[1].healthy.own, 0.06, 1e-3);
  EXPECT_NEAR(comparisons[1].now.own, 0.12, 1e-3);
  EXPECT_NEAR(comparisons[0].now.own, 0.06, 1e-3);
  ASSERT_EQ(comparisons[0].now.communicators.size(), 1u);
  EXPECT_NEAR(comparisons[0].now.communicators[0].seconds, 0.1, 1e-3);

  // Half of the calls went into a graph, and were not timed: nobody is slow by that.
  job.members()[12].calls = profiled(160ms, 100ms, 2);
  EXPECT_FALSE(ownTimeGrowth(job.members().at(12), 4, OwnTime::alsoInProfile).has_value());
}

TEST(Decisions, TellWhatPartOfTheDelayIsARanksOwn) {
  JobView job = healthyJob();
  const auto shareOf = [&](ProcessId process) {
    return shareOfDelay(job.members().at(process), 4, delayOf(job, 4), usualGrowth(job, 4));
  };
  EXPECT_FALSE(shareOf(10).has_value()) << "there is no delay";
  const auto now = [&](ProcessId process, double outside, int microBatches) {
    for (int i = 0; i < 4; ++i)
      job.handle(process,
                 Samples{{{.index = 9 + i, .seconds = 0.3, .outside = outside, .microBatches = microBatches}}});
  };
  for (const ProcessId process : {10, 11, 12, 13}) now(process, 0.08, 8);
  now(11, 0.18, 8);
  EXPECT_NEAR(delayOf(job, 4), 0.2, 1e-9);
  EXPECT_NEAR(shareOf(11).value_or(-1), 0.5, 1e-9);
  EXPECT_NEAR(shareOf(10).value_or(-1), 0, 1e-9);
  // With half of the work it is the cause of half as much.
  now(11, 0.09, 4);
  EXPECT_NEAR(shareOf(11).value_or(-1), 0.25, 1e-9);
  // All of them compute twice as long: only what is beyond that is its own.
  for (const ProcessId process : {10, 12, 13}) now(process, 0.16, 8);
  now(11, 0.18, 8);
  EXPECT_NEAR(shareOf(11).value_or(-1), 0.1, 1e-9);
  EXPECT_NEAR(shareOf(10).value_or(-1), 0, 1e-9);
  job.members()[11].healthy.reset();
  EXPECT_FALSE(shareOf(11).has_value()) << "nothing is known of its health";
}

TEST(Decisions, DoNotCompareWhoCutsItsIterationsElsewhere) {
  JobView job = healthyJob();
  const auto calls = [&](ProcessId process, double seconds, std::uint32_t count) {
    for (int i = 0; i < 4; ++i)
      job.handle(process, Samples{{{.index = 9 + i,
                                    .seconds = seconds,
                                    .outside = 0.8 * seconds,
                                    .microBatches = 8,
                                    .communicators = {{1, 0.2 * seconds, count}}}}});
  };
  for (const ProcessId process : {10, 11, 12, 13}) calls(process, 0.1, 16);
  for (auto& [process, member] : job.members()) member.healthy = JobView::means(member, 4);
  calls(11, 0.15, 24);
  const auto comparisons = comparisonsOf(job, 4);
  ASSERT_EQ(comparisons.size(), 3u);
  for (const auto& comparison : comparisons) EXPECT_NE(comparison.rank, 1);
  EXPECT_FALSE(ownTimeGrowth(job.members().at(11), 4).has_value());
  // Two iterations of the others are one to rank 1, or half of one: it has not become slower.
  for (const double iterations : {2.0, 0.5}) {
    calls(11, 0.1 * iterations, static_cast<std::uint32_t>(16 * iterations));
    EXPECT_EQ(comparisonsOf(job, 4).size(), 4u);
    EXPECT_NEAR(ownTimeGrowth(job.members().at(11), 4).value_or(0), 1, 1e-9) << iterations;
  }
  // Some calls more come from the border of two iterations.
  calls(11, 0.1, 18);
  EXPECT_EQ(comparisonsOf(job, 4).size(), 4u);
}

TEST(Decisions, KnowWhoSendsAndWhoGoesRound) {
  JobView job = healthyJob();
  for (const ProcessId process : {10, 12}) job.handle(process, Traffic{2, true, {}});
  job.handle(11, Traffic{3, false, {1}});
  const auto facts = jobFactsOf(job, 4, false);
  ASSERT_EQ(facts.communicators.size(), 3u);
  EXPECT_FALSE(facts.communicators[0].ringCollectives);  // nobody has seen a collective there
  EXPECT_TRUE(facts.communicators[1].ringCollectives);
  EXPECT_EQ(facts.communicators[2].pointToPoint, (std::vector<Link>{{0, 1}}));
  EXPECT_EQ(facts.communicators[1].nodes, (std::vector<int>{0, 1}));
  EXPECT_EQ(facts.nodeOfPlace, (std::vector<int>{0, 0, 1, 1}));
  EXPECT_EQ(facts.microBatches, 16);
  EXPECT_NEAR(facts.secondsPerMicroBatch.at(1), 0.01, 1e-9);
}

TEST(Decisions, KnowWhatOfALinksBytesGoesRoundTheRing) {
  JobView job = healthyJob();
  MemberView& member = job.members().at(10);
  member.transfers = {.sums = {{.id = 2, .peer = 1, .sending = true, .bytes = 600, .ringBytes = 600, .channel = 0},
                               {.id = 2, .peer = 1, .sending = true, .bytes = 200, .channel = 1},
                               {.id = 2, .peer = 1, .sending = false, .bytes = 1000}},
                      .iterations = 2};
  const auto facts = jobFactsOf(job, 4, false);
  const auto& communicator = facts.communicators[1];
  ASSERT_EQ(communicator.id, 2u);
  ASSERT_EQ(communicator.carried.size(), 1u);
  const auto& [link, carried] = *communicator.carried.begin();
  EXPECT_EQ(link.to, 1);
  EXPECT_DOUBLE_EQ(carried.all, 400);
  EXPECT_DOUBLE_EQ(carried.aroundRing, 300);
}

TEST(Decisions, TakeARoleFromTheRegisteredLayout) {
  using Role = instrument::CommunicatorRole;
  JobView job = healthyJob();
  job.handle(10, CommunicatorFormed{4, true, {0, 1}, {}, {}, {}});
  const auto roles = [&] {
    std::map<CommunicatorId, Role> all;
    for (const auto& shape : shapesOf(job)) all[shape.communicator] = shape.registered;
    return all;
  };
  EXPECT_EQ(roles(),
            (std::map<CommunicatorId, Role>{{1, Role::job}, {2, Role::data}, {3, Role::data}, {4, Role::pipeline}}));
  // However it looks: as many calls as tensor groups make.
  for (const ProcessId process : {10, 12}) job.handle(process, Traffic{2, true, {}});
  EXPECT_NE(communicatorNames(job).nameOf(2).find("data parallel"), std::string::npos);
  job.members()[11].layout.reset();
  EXPECT_EQ(roles().at(1), Role::unknown);
  EXPECT_EQ(roles().at(2), Role::data);
}

TEST(Decisions, ChangeNothingWhereSomebodyRunsWithoutFalcon) {
  JobView job = healthyJob();
  for (const ProcessId process : {10, 11, 12, 13}) job.handle(process, Traffic{1, true, {}});
  EXPECT_TRUE(job.isComplete());
  EXPECT_TRUE(jobFactsOf(job, 4, false).communicators[0].ringCollectives);
  job.left(13);
  EXPECT_FALSE(job.isComplete());
  const auto facts = jobFactsOf(job, 4, false);
  EXPECT_FALSE(facts.communicators[0].ringCollectives);
  EXPECT_FALSE(facts.layout.has_value());
}

TEST(Decisions, RestartNothingElsewhereWhereEachHostKeepsItsOwnCheckpoints) {
  JobView job = healthyJob();
  for (const ProcessId process : {10, 11, 12, 13})
    job.handle(process, RestartKnown{.asked = true, .expectedSeconds = 30, .checkpoint = 7});
  EXPECT_TRUE(restartSecondsOf(job));
  job.handle(12, RestartKnown{.asked = true, .expectedSeconds = 30, .checkpoint = 7, .seesOthers = false});
  EXPECT_TRUE(hasFoldersOfHosts(job));
  EXPECT_FALSE(restartSecondsOf(job));
  for (const ProcessId process : {10, 11, 13})
    job.handle(process, RestartKnown{.asked = true, .expectedSeconds = 30, .checkpoint = 7, .seesOthers = false});
  EXPECT_TRUE(restartSecondsOf(job)) << "what nobody finds was not written";
}

TEST(Decisions, KnowNoLayoutWhereRanksRegisterDifferentOnes) {
  JobView job = healthyJob();
  ASSERT_TRUE(jobFactsOf(job, 4, false).layout.has_value());
  // As many ranks in all, so that each of them takes it for right.
  for (const ProcessId process : {10, 11})
    job.handle(process, PartKnown{4, 1, 1, static_cast<int>(process) - 10, 0, 0, 16, {}});
  EXPECT_FALSE(jobFactsOf(job, 4, false).layout.has_value());
}

TEST(Decisions, KnowWhoHasWhichPlaceUnlessTwoHaveOne) {
  JobView job = healthyJob();
  EXPECT_EQ(jobFactsOf(job, 4, false).nodeOfPlace.size(), 4u);
  job.handle(10, PartKnown{2, 2, 1, 1, 0, 0, 16, {}});  // a place that another one has
  const auto facts = jobFactsOf(job, 4, false);
  EXPECT_TRUE(facts.layout.has_value());
  EXPECT_TRUE(facts.nodeOfPlace.empty());
  // In another order, as Megatron's, they are known.
  job.handle(12, PartKnown{2, 2, 1, 0, 0, 0, 16, {}});
  EXPECT_EQ(jobFactsOf(job, 4, false).rankAt, (std::vector<Rank>{2, 1, 0, 3}));
  EXPECT_EQ(jobFactsOf(job, 4, false).nodeOfPlace, (std::vector<int>{1, 0, 0, 1}));
}

TEST(Decisions, KnowTheTightestLimitsOfAReplicaAndRailsOfAllOrNone) {
  JobView job = healthyJob();
  EXPECT_EQ(jobFactsOf(job, 4, false).limits, (rebalance::SplitLimits{.most = {0, 0}, .least = {0, 0}}));
  for (Rank rank = 0; rank < 4; ++rank) {
    PartKnown part{2, 2, 1, rank / 2, rank % 2, 0, 16, {}};
    part.multiple = 2;
    part.leastMicroBatches = rank;
    part.mostMicroBatches = rank == 3 ? 0 : 12 - rank;
    part.evenOnly = rank == 1;
    part.rail = rank == 2 ? 0 : 1;
    job.handle(10 + static_cast<ProcessId>(rank), part);
  }
  auto facts = jobFactsOf(job, 4, false);
  EXPECT_EQ(facts.limits, (rebalance::SplitLimits{2, true, {11, 10}, {1, 3}}));
  EXPECT_TRUE(facts.railOfRank.empty());
  job.members()[12].layout->rail = 2;
  facts = jobFactsOf(job, 4, false);
  EXPECT_EQ(facts.railOfRank, (std::vector{1, 1, 2, 1}));
  EXPECT_EQ(facts.stageSeconds.size(), 2u);
  EXPECT_EQ(facts.timesAsLong.size(), 4u);
}

/// The newest iterations of the rank take so long outside of the library, a micro-batch.
void takes(JobView& job, Rank rank, double secondsPerMicroBatch) {
  for (int i = 0; i < 4; ++i)
    job.handle(10 + static_cast<ProcessId>(rank),
               Samples{{{.index = 9 + i, .seconds = 1, .outside = 8 * secondsPerMicroBatch, .microBatches = 8}}});
}

TEST(Decisions, APipelineFillsForItsOtherStagesTime) {
  JobView job = healthyJob();
  EXPECT_NEAR(jobFactsOf(job, 4, false).fillSeconds.at(0), 0.01, 1e-9) << "(stages - 1) times a stage's";
  takes(job, 2, 0.03);
  takes(job, 3, 0.02);
  auto facts = jobFactsOf(job, 4, false);
  EXPECT_NEAR(facts.secondsPerMicroBatch.at(1), 0.03, 1e-9);
  EXPECT_NEAR(facts.fillSeconds.at(0), 0.01, 1e-9);
  EXPECT_NEAR(facts.fillSeconds.at(1), 0.02, 1e-9) << "the stage that is not the slowest";

  for (auto& [process, member] : job.members()) member.layout->multiple = 2;  // interleaved
  EXPECT_NEAR(jobFactsOf(job, 4, false).fillSeconds.at(1), 0.01, 1e-9);
  for (auto& [process, member] : job.members()) member.layout->multiple = 1;
  takes(job, 3, 0);  // the vendor's calls do not tell
  facts = jobFactsOf(job, 4, false);
  EXPECT_EQ(facts.secondsPerMicroBatch.size(), 2u);
  EXPECT_TRUE(facts.fillSeconds.empty()) << "a stage's time is not known";
}

TEST(Decisions, WithoutAPipelineNothingFills) {
  JobView job = healthyJob();
  for (Rank rank = 0; rank < 4; ++rank)
    job.handle(10 + static_cast<ProcessId>(rank), PartKnown{2, 1, 2, rank / 2, 0, rank % 2, 16, {}});
  EXPECT_EQ(jobFactsOf(job, 4, false).fillSeconds, (std::vector<double>{0, 0}));
}

/// Four replicas of a rank each, whose newest iterations took so many seconds a micro-batch, by rank.
JobView replicasThatTook(const std::vector<std::vector<double>>& seconds) {
  JobView job;
  for (Rank rank = 0; rank < std::ssize(seconds); ++rank) {
    const ProcessId process = 10 + static_cast<ProcessId>(rank);
    job.handle(process, Introduce{rank, "host", "", "", 1});
    job.handle(process, PartKnown{static_cast<int>(seconds.size()), 1, 1, rank, 0, 0, 32, {}});
    for (const double each : seconds[static_cast<std::size_t>(rank)])
      job.handle(process, Samples{{{.seconds = 1, .outside = 8 * each, .microBatches = 8}}});
  }
  return job;
}

std::vector<int> splitFor(const JobView& job, Rank slow) {
  const std::vector culprits{Culprit{CulpritKind::rank, slow, {}, false}};
  return rebalance::plansFor(jobFactsOf(job, 4, false, culprits), culprits).at(0).microBatches;
}

// Of two equally fast ranks one looks 11 % faster: a live job had 10+8+5+9 by that, and waited for its rank 0. The
// second profile is that of another such job, which had 9+9+3+11.
TEST(Decisions, ASplitFollowsNoChanceOfTheMeasurement) {
  EXPECT_EQ(splitFor(replicasThatTook({{0.026, 0.030, 0.029, 0.026},
                                       {0.033, 0.029, 0.034, 0.028},
                                       {0.050, 0.048, 0.052, 0.050},
                                       {0.031, 0.027, 0.032, 0.028}}),
                     2),
            (std::vector<int>{9, 9, 5, 9}));
  EXPECT_EQ(splitFor(replicasThatTook({{0.02835, 0.03099, 0.02976, 0.03160},
                                       {0.03178, 0.03131, 0.02628, 0.02473},
                                       {0.06456, 0.08537, 0.06204, 0.07287},
                                       {0.02129, 0.02034, 0.02950, 0.02148}}),
                     2),
            (std::vector<int>{10, 10, 3, 9}));
}

TEST(Decisions, ASplitFollowsDifferencesThatAreMeasuredWell) {
  EXPECT_EQ(splitFor(replicasThatTook({{0.0281, 0.0279, 0.0280, 0.0280},
                                       {0.0313, 0.0311, 0.0312, 0.0312},
                                       {0.0505, 0.0495, 0.0500, 0.0500},
                                       {0.0296, 0.0295, 0.0294, 0.0295}}),
                     2),
            (std::vector<int>{10, 8, 5, 9}));
}

// What names a rank is more than its own time: a test of its processor, what its quota took.
TEST(Decisions, WhoIsNamedIsSlowHoweverMuchItScatters) {
  const JobView job = replicasThatTook(
      {{0.03, 0.05, 0.03, 0.05}, {0.05, 0.03, 0.05, 0.03}, {0.04, 0.08, 0.04, 0.08}, {0.03, 0.05, 0.03, 0.05}});
  const std::vector culprits{Culprit{CulpritKind::rank, 2, {}, false}};
  EXPECT_NEAR(jobFactsOf(job, 4, false).secondsPerMicroBatch.at(2), 0.045, 1e-9) << "chance, as long as it is not";
  EXPECT_NEAR(jobFactsOf(job, 4, false, culprits).secondsPerMicroBatch.at(2), 0.06, 1e-9);
  EXPECT_EQ(splitFor(job, 2), (std::vector<int>{9, 9, 6, 8}));
}

TEST(Decisions, StagesAreAlikeAcrossReplicasAndNotAmongEachOther) {
  JobView job = healthyJob();
  const auto took = [&](Rank rank, double seconds) {
    for (const double factor : {0.9, 1.1, 0.9, 1.1})
      job.handle(10 + static_cast<ProcessId>(rank),
                 Samples{{{.seconds = 1, .outside = 8 * seconds * factor, .microBatches = 8}}});
  };
  took(0, 0.010), took(2, 0.012);  // the first stage
  took(1, 0.019), took(3, 0.021);  // the last, which has the loss
  const auto facts = jobFactsOf(job, 4, false);
  for (const std::size_t replica : {0, 1}) {
    EXPECT_NEAR(facts.secondsPerMicroBatch.at(replica), 0.020, 1e-9);
    EXPECT_NEAR(facts.fillSeconds.at(replica), 0.011, 1e-9);
  }
}

TEST(Decisions, MeasureVolumesInTheBaseline) {
  JobView job = healthyJob();
  job.members()[10].healthyTransfers = {{{.id = 2, .peer = 1, .sending = true, .bytes = 4000, .moving = 0.1},
                                         {.id = 2, .peer = 1, .sending = false, .bytes = 9000, .moving = 0.1}},
                                        4};
  const auto volumes = jobFactsOf(job, 4, false).volumes;
  EXPECT_EQ(volumes.data, 1000);
  EXPECT_EQ(volumes.pipeline, 0);
}

TEST(Decisions, ARemedyWaitsForItsPrice) {
  const auto planOf = [](rebalance::PlanKind kind, bool swap = false) {
    rebalance::Plan plan;
    plan.kind = kind;
    if (swap) plan.permutation = rebalance::NodePermutation{};
    return plan;
  };
  using rebalance::PlanKind;
  // Iterations of 1 s. What is nearly free follows within a few iterations at 1.3 times the healthy time.
  EXPECT_FALSE(isDue(planOf(PlanKind::reroute), 0.3, 1));
  EXPECT_TRUE(isDue(planOf(PlanKind::reroute), 4 * 0.3, 1));
  EXPECT_FALSE(isDue(planOf(PlanKind::splitMicroBatches), 1, 1));
  EXPECT_TRUE(isDue(planOf(PlanKind::splitMicroBatches), 7 * 0.3, 1));
  EXPECT_FALSE(isDue(planOf(PlanKind::advise, true), 59, 1));
  EXPECT_TRUE(isDue(planOf(PlanKind::advise, true), 60, 1));
  EXPECT_FALSE(isDue(planOf(PlanKind::advise), 599, 1));
  EXPECT_TRUE(isDue(planOf(PlanKind::advise), 600, 1));
  EXPECT_TRUE(isDue(planOf(PlanKind::none), 0, 1));
}

// The first and the second ranks of two nodes use the same slow link where a node has one address.
TEST(Decisions, AKnownLinkIsThatOfWhoeverSharesItsAddresses) {
  const std::vector<Culprit> known{{CulpritKind::link, -1, {2, 0}, false}};
  for (const char* node : {"10.0.0.2", "10.0.0.1", ""}) {
    JobView job = healthyJob();
    const std::string first = *node ? "10.0.0.1" : "";
    for (Rank rank = 0; rank < 4; ++rank)
      job.handle(10 + static_cast<ProcessId>(rank), Introduce{rank, "host", "", rank < 2 ? first : node, 1});
    std::set<Link> links;
    for (const auto& candidate : seenInProfile(job, 4, known).known) links.insert(candidate.link);
    EXPECT_TRUE(links.contains({2, 0})) << node;
    EXPECT_EQ(links.contains({3, 1}), node == std::string("10.0.0.2")) << node;
  }
}

TEST(Decisions, AreTheSameCulpritInBothDirections) {
  const Culprit there{CulpritKind::link, -1, {0, 2}, false}, back{CulpritKind::link, -1, {2, 0}, true};
  EXPECT_TRUE(isSameCulprit(there, back));
  EXPECT_FALSE(isSameCulprit(there, {CulpritKind::link, -1, {0, 3}, false}));
  EXPECT_FALSE(isSameCulprit(there, {CulpritKind::rank, 0, {}, false}));
}

}  // namespace
}  // namespace falcon::control
