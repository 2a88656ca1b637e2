// The controller over whole fail-slows: what it says, in which order, and what it changes in the job.
#include "control/controller.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "controller_fixture.h"

namespace falcon::control::test {
namespace {

TEST_F(ControllerTest, SaysNothingAboutAHealthyJob) {
  FakeJob& job = start();
  job.run(200);
  EXPECT_EQ(job.story(), Kinds{}) << job.text();
  ASSERT_EQ(job.count(jobStarted), 1);
  EXPECT_NE(job.first(jobStarted)->text.find("8 ranks and 7 communicators"), std::string::npos) << job.text();
  EXPECT_EQ(job.count(periodKnown), 1);
  job.controller().end(123);
  EXPECT_EQ(job.count(jobEnded), 1);
  EXPECT_NE(job.first(jobEnded)->text.find("after 123 iterations; no fail-slows were named"), std::string::npos)
      << job.text();
}

TEST_F(ControllerTest, SaysTheEndOfAJobWhoseControllerHasDied) {
  FakeJob& job = start();
  job.run(100);
  job.changeController();
  job.run(100);
  EXPECT_EQ(job.count(jobStarted), 1) << "it is said already";
  job.controller().end(200, true);
  ASSERT_EQ(job.count(jobEnded), 1);
  EXPECT_NE(job.first(jobEnded)->text.find("after 200 iterations; no fail-slows were named since its controller died"),
            std::string::npos)
      << job.text();
}

TEST_F(ControllerTest, LeavesTheEndOfAJobToWhoSaidItsStart) {
  FakeJob& job = start();
  job.run(100);
  job.changeController();
  job.run(100);
  job.controller().end(200);
  EXPECT_EQ(job.count(jobEnded), 0) << "the one before has left in order";
}

TEST_F(ControllerTest, NamesTheRankOfASlowGpu) {
  FakeJob& job = start();
  job.onGpus = true;
  job.compute[3] = 2.5;
  job.run(60);
  ASSERT_EQ(job.count(verdict), 1) << job.text();
  EXPECT_EQ(job.first(verdict)->culprit, slowRank(3));
  EXPECT_NE(job.first(verdict)->text.find("its GPU (Fake 9000 at 0000:17:00.0) is slow: "), std::string::npos)
      << job.text();
}

TEST_F(ControllerTest, SplitsForASlowRankAndBackOnItsRelief) {
  FakeJob& job = start();
  job.compute[3] = 2.5;
  job.run(60);
  EXPECT_EQ(job.story(), (Kinds{onset, suspicion, trapClosed, trapOpened, verdict, mitigationApplied})) << job.text();
  EXPECT_EQ(job.first(verdict)->culprit, slowRank(3));
  EXPECT_EQ(job.first(mitigationApplied)->culprit, slowRank(3));
  const auto splits = job.splits();
  ASSERT_EQ(splits.size(), 1u);
  EXPECT_LE((*splits.begin())[1], 4) << job.text();
  EXPECT_GE((*splits.begin())[0], 9) << job.text();
  EXPECT_LE(job.first(mitigationApplied)->iteration, job.first(verdict)->iteration + 5);
  EXPECT_EQ(job.controller().activeCount(CulpritKind::rank), 1);
  EXPECT_EQ(job.controller().mitigations(), (Mitigation::Counts{{{"split", "applied"}, 1}}));

  job.compute.clear();
  job.run(60);
  const Kinds after{relief, mitigationUndone};
  EXPECT_EQ(job.storyAfter(6), after) << job.text();
  EXPECT_EQ(job.splits(), std::set{equalSplit});
  EXPECT_EQ(job.controller().activeCount(), 0);
  EXPECT_EQ(job.controller().mitigations().at({"split", "undone"}), 1);
}

// With its few micro-batches a rank may stay below its quota: as fast as ever, until it gets its share back.
TEST_F(ControllerTest, ARankWhoseQuotaIsStillTighterHasNotRecovered) {
  FakeJob& job = start();
  job.compute[3] = 2.5;
  job.quota[3] = 0.4;
  job.run(60);
  ASSERT_EQ(job.count(mitigationApplied), 1) << job.text();
  job.compute.clear();
  job.run(60);
  EXPECT_EQ(job.count(relief), 0) << job.text();
  job.quota.clear();
  job.run(60);
  EXPECT_EQ(job.count(relief), 1) << job.text();
  EXPECT_EQ(job.splits(), std::set{equalSplit});
}

TEST_F(ControllerTest, SaysWhetherASlowRanksTimeGoesIntoOnePartOfItsCode) {
  for (const bool loads : {true, false}) {
    FakeJob& job = start();
    (loads ? job.loading : job.compute)[3] = loads ? 0.2 : 2.5;
    ASSERT_TRUE(job.runUntil(verdict, 60)) << job.text();
    const Event& said = *job.first(verdict);
    EXPECT_EQ(said.culprit, slowRank(3)) << job.text();
    EXPECT_EQ(said.text.find("\"data\", outside of all collectives: 201.0 ms") != std::string::npos, loads)
        << said.text;
    ASSERT_FALSE(said.ranges.empty());
    EXPECT_EQ(said.ranges[0].rank, 3);
    EXPECT_EQ(said.ranges[0].name, loads ? "data" : "compute");
  }
}

TEST_F(ControllerTest, SeesTheReliefOfARankOnAMachineThatBecameBusyOrCalm) {
  for (const double everyone : {0.5, 2.0}) {
    FakeJob& job = start();
    job.compute[3] = 2.5;
    job.run(60);
    ASSERT_EQ(job.count(mitigationApplied), 1) << job.text();
    job.everyone = everyone;
    job.run(30);
    EXPECT_EQ(job.splits().count(equalSplit), 0u) << "no relief yet\n" << job.text();
    job.compute.clear();
    job.run(60);
    EXPECT_EQ(job.splits(), std::set{equalSplit}) << job.text();
  }
}

TEST_F(ControllerTest, RoutesAroundASlowLinkAndBackOnItsRelief) {
  for (const bool bothWays : {false, true}) {
    FakeJob& job = start();
    job.links[{0, 2}] = 15;
    if (bothWays) job.links[{2, 0}] = 15;
    job.run(60);
    EXPECT_EQ(job.story(), (Kinds{onset, suspicion, trapClosed, trapOpened, verdict, mitigationApplied})) << job.text();
    EXPECT_TRUE(isSameCulprit(job.first(verdict)->culprit, slowLink(0, 2))) << job.text();
    EXPECT_EQ(job.first(verdict)->culprit.bothWays, bothWays);
    const auto rings = job.rings(dataId);
    ASSERT_EQ(rings.size(), 1u);
    EXPECT_NE(*rings.begin(), firstRing);
    EXPECT_EQ(job.rings(dataId + 1), std::set{firstRing});
    EXPECT_EQ(job.rings(worldId).size(), 1u);
    EXPECT_EQ(job.splits(), std::set{equalSplit});

    job.links.clear();
    job.run(60);
    EXPECT_EQ(job.storyAfter(6), (Kinds{relief, mitigationUndone})) << job.text();
    EXPECT_EQ(job.rings(dataId), std::set{firstRing});
    EXPECT_EQ(job.controller().mitigations(),
              (Mitigation::Counts{{{"reroute", "applied"}, 1}, {{"reroute", "undone"}, 1}}));
  }
}

TEST_F(ControllerTest, KeepsARerouteUntilTheLinkIsAsFastAsHealthyOnesInEveryDirection) {
  FakeJob& job = start();
  job.links[{0, 2}] = job.links[{2, 0}] = 15;
  job.run(60);
  ASSERT_EQ(job.count(mitigationApplied), 1) << job.text();
  job.links[{0, 2}] = job.links[{2, 0}] = 2;  // seven times as fast as it was, and half as fast as all others
  job.run(120);
  EXPECT_EQ(job.count(relief), 0) << job.text();
  job.links.erase({0, 2});
  job.run(120);
  EXPECT_EQ(job.count(relief), 0) << job.text();
  EXPECT_EQ(job.count(mitigationUndone), 0);
  job.links.clear();
  job.run(30);
  EXPECT_EQ(job.count(relief), 1) << job.text();
  EXPECT_EQ(job.rings(dataId), std::set{firstRing});
}

TEST_F(ControllerTest, SuspectsTheSlowRankFirstAndTheWholeJobNever) {
  for (Rank slow = 0; slow < 8; ++slow) {
    FakeJob& job = start();
    job.compute[slow] = 3;
    ASSERT_TRUE(job.runUntil(suspicion, 60)) << job.text();
    EXPECT_EQ(job.first(suspicion)->text.find(fmt::format("rank {} computes", slow)), 0u) << job.text();
    EXPECT_EQ(job.first(suspicion)->text.find("0, 1, 2, 3"), std::string::npos) << job.text();
    ASSERT_TRUE(job.runUntil(verdict, 20));
    EXPECT_EQ(job.first(verdict)->culprit, slowRank(slow));
    EXPECT_EQ(job.count(verdict), 1);
  }
}

TEST_F(ControllerTest, NamesNobodyWhenAllAreSlowAlikeAndBacksOff) {
  ControllerSettings settings = automatic();
  settings.trapBudgetPercent = 100;
  FakeJob& job = start(settings);
  job.everyone = 1.6;
  job.run(300);
  EXPECT_EQ(job.count(onset), 1) << job.text();
  EXPECT_EQ(job.count(trapClosed), 0);
  EXPECT_EQ(job.count(verdict), 0);
  EXPECT_GE(job.count(inconclusive), 2);
  EXPECT_LE(job.count(inconclusive), 3);
  std::vector<double> times;
  for (const Event& event : job.events())
    if (event.kind == inconclusive) times.push_back(seconds(event.time));
  for (std::size_t i = 2; i < times.size(); ++i) EXPECT_GT(times[i] - times[i - 1], times[i - 1] - times[i - 2]);
  job.everyone = 1;
  job.run(60);
  EXPECT_EQ(job.count(relief), 1) << job.text();
}

TEST_F(ControllerTest, NamesTwoSlowRanksAndSplitsForWhoIsLeft) {
  FakeJob& job = start();
  job.compute[0] = job.compute[5] = 3;
  job.run(60);
  EXPECT_EQ(job.count(verdict), 2) << job.text();
  ASSERT_EQ(job.count(mitigationApplied), 1) << job.text();
  const auto both = job.splits();
  ASSERT_EQ(both.size(), 1u);
  EXPECT_LT((*both.begin())[0], 6);
  EXPECT_LT((*both.begin())[2], 6);

  job.compute.erase(0);
  job.run(60);
  EXPECT_EQ(job.count(relief), 1) << job.text();
  EXPECT_EQ(job.last(relief)->culprit, slowRank(0));
  EXPECT_EQ(job.count(mitigationUndone), 0);
  EXPECT_EQ(job.count(mitigationApplied), 2) << job.text();
  const auto one = job.splits();
  ASSERT_EQ(one.size(), 1u);
  EXPECT_GE((*one.begin())[0], 8);
  EXPECT_LT((*one.begin())[2], 6);

  job.compute.clear();
  job.run(60);
  EXPECT_EQ(job.count(relief), 2) << job.text();
  EXPECT_EQ(job.count(mitigationUndone), 1);
  EXPECT_EQ(job.splits(), std::set{equalSplit});
}

TEST_F(ControllerTest, FindsTheLinkThatASlowRankHid) {
  FakeJob& job = start();
  job.compute[7] = 3;
  job.links[{0, 2}] = 20;
  job.run(120);
  EXPECT_EQ(job.count(verdict), 2) << job.text();
  EXPECT_EQ(job.first(verdict)->culprit, slowRank(7));
  EXPECT_EQ(job.last(verdict)->culprit, slowLink(0, 2));
  EXPECT_EQ(job.count(mitigationApplied), 2);
  EXPECT_NE(job.rings(dataId), std::set{firstRing});

  job.links.clear();  // the link first, though it came last
  job.run(60);
  EXPECT_EQ(job.last(relief)->culprit, slowLink(0, 2)) << job.text();
  EXPECT_EQ(job.rings(dataId), std::set{firstRing});
  EXPECT_NE(job.splits(), std::set{equalSplit});
  job.compute.clear();
  job.run(60);
  EXPECT_EQ(job.count(mitigationUndone), 2) << job.text();
  EXPECT_EQ(job.splits(), std::set{equalSplit});
}

// No plan of ours changes anything: it looks again because somebody was named.
TEST_F(ControllerTest, FindsTheLinkThatATestMissedBesideASlowRank) {
  ControllerSettings settings = automatic();
  settings.mitigate = MitigateMode::off;
  FakeJob& job = start(settings);
  job.compute[7] = 3;
  job.links[{0, 2}] = 20;
  job.deaf = [&](Rank, const Message& message) {
    return job.count(verdict) == 0 && std::holds_alternative<RunWave>(message);
  };
  job.run(120);
  ASSERT_EQ(job.count(verdict), 2) << job.text();
  EXPECT_EQ(job.first(verdict)->culprit, slowRank(7));
  EXPECT_EQ(job.last(verdict)->culprit, slowLink(0, 2));
  EXPECT_EQ(job.count(onset), 1) << job.text();
  EXPECT_EQ(job.count(worsening), 0) << job.text();
  for (const Event& event : job.events()) {
    if (event.kind != suspicion) continue;
    const bool suspected = std::any_of(event.suspects.begin(), event.suspects.end(),
                                       [](const Suspect& each) { return each.ranks == std::vector<Rank>{7}; });
    EXPECT_EQ(event.text.find("rank 7 computes") != std::string::npos, suspected) << "words and suspects agree";
  }
  EXPECT_EQ(job.first(verdict)->text.find("rank 7 is slow: rank 7"), std::string::npos) << job.text();
}

// While rank 7 is slow its groups are no suspects for so little.
TEST_F(ControllerTest, FindsTheLinkThatASlowRankHidOnceItHasRecovered) {
  for (const auto mode : {MitigateMode::off, MitigateMode::advise, MitigateMode::automatic}) {
    ControllerSettings settings = automatic();
    settings.mitigate = mode;
    FakeJob& job = start(settings);
    job.compute[7] = 3;
    job.links[{1, 3}] = 2.8;
    job.run(90);
    ASSERT_EQ(job.count(verdict), 1) << job.text();
    EXPECT_EQ(job.first(verdict)->culprit, slowRank(7));
    job.compute.clear();
    job.run(90);
    EXPECT_EQ(job.first(relief)->culprit, slowRank(7)) << job.text();
    ASSERT_EQ(job.count(verdict), 2) << job.text();
    EXPECT_EQ(job.last(verdict)->culprit, slowLink(1, 3));
    EXPECT_EQ(job.count(onset), 1) << job.text();
    job.links.clear();
    job.run(90);
    EXPECT_EQ(job.count(relief), 2) << job.text();
    EXPECT_EQ(job.last(relief)->culprit, slowLink(1, 3)) << job.text();
    EXPECT_EQ(job.controller().activeCount(), 0);
    EXPECT_EQ(job.rings(dataId + 1), std::set{firstRing});
  }
}

// The iteration takes as long as before: the other link alone delays it as much.
TEST_F(ControllerTest, SeesTheReliefOfOneOfTwoLinks) {
  ControllerSettings settings = automatic();
  settings.mitigate = MitigateMode::off;
  FakeJob& job = start(settings);
  job.links[{0, 2}] = job.links[{4, 6}] = 15;
  job.run(60);
  ASSERT_EQ(job.count(verdict), 2) << job.text();
  job.links.erase({0, 2});
  job.run(60);
  ASSERT_EQ(job.count(relief), 1) << job.text();
  EXPECT_EQ(job.last(relief)->culprit, slowLink(0, 2));
  EXPECT_EQ(job.controller().activeCount(), 1);
  job.links.clear();
  job.run(60);
  EXPECT_EQ(job.count(relief), 2) << job.text();
  EXPECT_EQ(job.last(relief)->culprit, slowLink(4, 6));
  EXPECT_EQ(job.count(verdict), 2);
}

// They are probed one after the other, and none of them five times yet when they recover.
TEST_F(ControllerTest, SeesTheReliefOfAllLinksOfAnInterfaceSoon) {
  FakeJob& job = start();
  for (const Rank peer : {0, 2, 6}) job.links[{4, peer}] = job.links[{peer, 4}] = 3;
  ASSERT_TRUE(job.runUntil(verdict, 30)) << job.text();
  job.run(8);
  const int named = job.count(verdict);
  EXPECT_GT(named, 1) << job.text();
  job.links.clear();
  EXPECT_TRUE(job.runUntil(relief, 15, named)) << job.text();
}

TEST_F(ControllerTest, RoutesAroundTwoLinksTogether) {
  for (const bool sameLink : {false, true}) {
    FakeJob& job = start();
    job.links[{0, 2}] = 15;
    job.run(40);
    ASSERT_EQ(job.count(mitigationApplied), 1) << job.text();
    // The new ring is 0-4-6-2, of which another link becomes slow: the first one's way back, or one that has nothing
    // to do with it. Neither was in the baseline.
    ASSERT_EQ(*job.rings(dataId).begin(), (std::vector<Rank>{0, 2, 3, 1}));
    const Link next = sameLink ? Link{2, 0} : Link{6, 2};
    job.links[next] = 15;
    job.run(60);
    EXPECT_EQ(job.count(verdict), 2) << job.text();
    EXPECT_TRUE(isSameCulprit(job.last(verdict)->culprit, slowLink(next.from, next.to))) << job.text();
    EXPECT_EQ(job.last(verdict)->culprit.bothWays, sameLink);
    EXPECT_EQ(job.controller().activeCount(), sameLink ? 1 : 2);
    ASSERT_EQ(job.count(mitigationApplied), 2) << job.text();
    const auto ring = *job.rings(dataId).begin();
    for (std::size_t i = 0; i < 4; ++i) {
      const Link link{2 * ring[i], 2 * ring[(i + 1) % 4]};  // a replica's first stage
      EXPECT_FALSE(job.links.contains(link)) << link.from << " -> " << link.to;
    }
    job.links.clear();
    job.run(60);
    EXPECT_EQ(job.rings(dataId), std::set{firstRing}) << job.text();
  }
}

// 0 -> 4 is no link of the ring 0-2-4-6.
TEST_F(ControllerTest, FindsASlowLinkThatOnlyATreeUses) {
  ControllerSettings settings = automatic();
  settings.mitigate = MitigateMode::off;
  for (const bool profiled : {true, false}) {
    FakeJob job(settings);
    job.trees = true;
    // A member that sends no profile leaves the algorithm unknown.
    if (!profiled) job.deaf = [](Rank rank, const Message& message) { return rank == 2 && is<SetProfiling>(message); };
    ASSERT_TRUE(job.runUntil(baselineTaken, 30)) << job.text();
    job.run(5);
    job.links[{0, 4}] = 15;
    job.run(60);
    ASSERT_EQ(job.count(verdict), 1) << job.text();
    EXPECT_EQ(job.first(verdict)->culprit, slowLink(0, 4));
  }
}

TEST_F(ControllerTest, SmallJobsToo) {
  FakeJob& job = start(automatic(), {4, 1, 1});
  job.compute[2] = 2.5;
  job.run(60);
  EXPECT_EQ(job.count(verdict), 1) << job.text();
  EXPECT_EQ(job.first(verdict)->culprit, slowRank(2));
  EXPECT_EQ(job.count(mitigationApplied), 1);
}

TEST_F(ControllerTest, SaysTheReliefOfWhatNobodyMitigated) {
  ControllerSettings settings = automatic();
  settings.mitigate = MitigateMode::off;
  for (const bool link : {false, true}) {
    FakeJob& job = start(settings);
    if (link)
      job.links[{0, 2}] = 15;
    else
      job.compute[3] = 2.5;
    job.run(60);
    EXPECT_EQ(job.story(), (Kinds{onset, suspicion, trapClosed, trapOpened, verdict})) << job.text();
    job.links.clear();
    job.compute.clear();
    job.run(60);
    ASSERT_EQ(job.count(relief), 1) << job.text();
    EXPECT_EQ(job.first(relief)->culprit, job.first(verdict)->culprit);
    EXPECT_EQ(job.controller().activeCount(), 0);
    EXPECT_EQ(job.sent<Propose>(), 0);
  }
}

// The machine got busier meanwhile: the job does not become as fast as it was.
TEST_F(ControllerTest, SaysTheReliefOfOneInAJobThatStaysSlower) {
  ControllerSettings settings = automatic();
  settings.mitigate = MitigateMode::off;
  for (const bool link : {false, true}) {
    FakeJob& job = start(settings);
    if (link)
      job.links[{0, 2}] = 25;
    else
      job.compute[3] = 2.5;
    job.run(60);
    ASSERT_EQ(job.count(verdict), 1) << job.text();
    job.links.clear();
    job.compute.clear();
    job.everyone = 1.3;
    job.run(60);
    ASSERT_EQ(job.count(relief), 1) << job.text();
    EXPECT_EQ(job.first(relief)->culprit, job.first(verdict)->culprit);
    EXPECT_EQ(job.controller().activeCount(), 0);
    EXPECT_EQ(job.count(verdict), 1) << job.text();
    EXPECT_EQ(job.count(trapClosed), 1) << job.text();
  }
}

// An easing alone is not its end: the link is as slow as it was.
TEST_F(ControllerTest, AnEasingOfSomethingElseRelievesNoLink) {
  ControllerSettings settings = automatic();
  settings.mitigate = MitigateMode::off;
  FakeJob& job = start(settings);
  job.everyone = 1.5;
  job.links[{0, 2}] = 40;
  job.run(60);
  ASSERT_EQ(job.count(verdict), 1) << job.text();
  job.everyone = 1;
  job.run(60);
  EXPECT_GE(job.count(EventKind::easing), 1) << job.text();
  EXPECT_EQ(job.count(relief), 0) << job.text();
  EXPECT_EQ(job.controller().activeCount(), 1);
}

TEST_F(ControllerTest, OnlyAdvisesWhereItIsTold) {
  ControllerSettings settings = automatic();
  settings.mitigate = MitigateMode::advise;
  FakeJob& job = start(settings);
  job.compute[3] = 2.5;
  job.run(120);
  EXPECT_EQ(job.story(), (Kinds{onset, suspicion, trapClosed, trapOpened, verdict, mitigationAdvised})) << job.text();
  EXPECT_NE(job.first(mitigationAdvised)->text.find("micro-batches split"), std::string::npos) << job.text();
  EXPECT_EQ(job.sent<Propose>(), 0);
  EXPECT_EQ(job.splits(), std::set{equalSplit});
}

TEST_F(ControllerTest, WhereSumsMayNotChangeARestartIsAdvisedAtItsPrice) {
  ControllerSettings settings = automatic();
  settings.deterministic = true;
  FakeJob& job = start(settings);
  job.compute[3] = 2.5;
  job.run(300);
  EXPECT_EQ(job.count(mitigationAdvised), 0) << job.text();  // 300 s have not cost 600
  EXPECT_EQ(job.sent<Propose>(), 0);
  EXPECT_TRUE(job.runUntil(mitigationAdvised, 2000)) << job.text();
  EXPECT_NE(job.first(mitigationAdvised)->text.find("NCCL_FALCON_DETERMINISTIC"), std::string::npos);
}

TEST_F(ControllerTest, WithoutValidationItOnlySuspects) {
  ControllerSettings settings = automatic();
  settings.validate = false;
  FakeJob& job = start(settings);
  job.compute[3] = 2.5;
  job.run(60);
  EXPECT_EQ(job.story(), (Kinds{onset, suspicion})) << job.text();
  EXPECT_EQ(job.sent<CloseTrap>(), 0);
  job.compute.clear();
  job.run(60);
  EXPECT_EQ(job.count(relief), 1) << job.text();
}

TEST_F(ControllerTest, NeverSaysTheEndOfWhatItNeverSaid) {
  FakeJob job(automatic());
  job.run(1);
  job.everyone = 2;  // slow in the baseline, then fast: that is no relief
  ASSERT_TRUE(job.runUntil(baselineTaken, 60));
  job.run(20);
  job.everyone = 1;
  job.run(100);
  EXPECT_EQ(job.story(), Kinds{}) << job.text();
}

}  // namespace
}  // namespace falcon::control::test
