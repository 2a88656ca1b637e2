// The controller when members do not answer, refuse, leave, or switch it off: nobody stays held, nothing half changed.
#include <gtest/gtest.h>

#include "controller_fixture.h"

namespace falcon::control::test {
namespace {

class ControllerFaultTest : public ControllerTest {
 protected:
  FakeJob& slowJob(ControllerSettings settings = automatic()) {
    FakeJob& job = start(settings);
    job.compute[3] = 2.5;
    return job;
  }
  static void expectNothingHangs(FakeJob& job) {
    EXPECT_FALSE(job.anyHeld()) << job.text();
    EXPECT_FALSE(job.anyUndecided()) << job.text();
    EXPECT_EQ(job.splits().size(), 1u) << job.text();
    EXPECT_EQ(job.rings(dataId).size(), 1u) << job.text();
  }
};

TEST_F(ControllerFaultTest, ARankThatDoesNotComeIsNotWaitedForLong) {
  FakeJob& job = slowJob();
  job.deaf = [](Rank rank, const Message& message) { return rank == 5 && is<CloseTrap>(message); };
  ASSERT_TRUE(job.runUntil(trapTimedOut, 60)) << job.text();
  job.run(1);
  expectNothingHangs(job);
  EXPECT_LE(job.first(trapTimedOut)->durationSeconds, 5.2);
  EXPECT_EQ(job.count(verdict), 0);
  EXPECT_GE(job.count(inconclusive), 1);
  job.run(60);
  EXPECT_EQ(job.count(trapClosed), 1) << "the budget of half a percent is used up by one trap\n" << job.text();
}

TEST_F(ControllerFaultTest, ACulpritThatLeavesAJobThatGoesOnIsRelieved) {
  FakeJob& job = slowJob();
  ASSERT_TRUE(job.runUntil(verdict, 60)) << job.text();
  job.run(10);
  job.shrinks = true;
  job.compute.clear();
  job.leave(3);
  ASSERT_TRUE(job.runUntil(relief, 60)) << job.text();
  EXPECT_EQ(job.last(relief)->culprit, slowRank(3));
  EXPECT_NE(job.last(relief)->text.find("has left the job, which goes on"), std::string::npos) << job.text();
}

TEST_F(ControllerFaultTest, ACulpritThatLeavesWithAllOthersIsNotSaidToHaveRecovered) {
  FakeJob& job = slowJob();
  ASSERT_TRUE(job.runUntil(verdict, 60)) << job.text();
  job.run(10);
  const int before = job.count(relief);
  for (const Rank rank : {3, 1, 2, 4, 5, 6, 7}) job.leave(rank);
  job.run(10);
  EXPECT_EQ(job.count(relief), before) << job.text();
}

TEST_F(ControllerFaultTest, AProcessThatNeverIteratesIsNotWaitedFor) {
  FakeJob job(automatic());
  job.idle = {5};
  ASSERT_TRUE(job.runUntil(baselineTaken, 60)) << job.text();
  job.run(5);
  job.compute[3] = 2.5;
  ASSERT_TRUE(job.runUntil(verdict, 60)) << job.text();
  EXPECT_EQ(job.last(verdict)->culprit, slowRank(3));
}

TEST_F(ControllerFaultTest, OfWhoGivesNoAnswerToATestOthersDecide) {
  FakeJob& job = slowJob();
  job.deaf = [](Rank rank, const Message& message) { return rank == 6 && is<RunCompute>(message); };
  EXPECT_TRUE(job.runUntil(verdict, 60)) << job.text();
  EXPECT_EQ(job.last(verdict)->culprit, slowRank(3));
  job.run(10);
  expectNothingHangs(job);
}

TEST_F(ControllerFaultTest, ASilentLinkTestEndsAndNamesNobodyWrongly) {
  FakeJob& job = start();
  job.links[{0, 2}] = 15;
  job.deaf = [](Rank rank, const Message& message) { return rank == 2 && is<RunWave>(message); };
  ASSERT_TRUE(job.runUntil(trapOpened, 60)) << job.text();
  job.run(30);
  expectNothingHangs(job);
  EXPECT_LE(job.first(trapOpened)->durationSeconds, 5.2);
  for (const Event& event : job.events())
    EXPECT_TRUE(event.kind != verdict || isSameCulprit(event.culprit, slowLink(0, 2))) << job.text();
}

TEST_F(ControllerFaultTest, ProfilesThatNeverComeDoNotStopIt) {
  FakeJob& job = slowJob();
  job.deaf = [](Rank rank, const Message& message) { return rank == 4 && is<SetProfiling>(message); };
  EXPECT_TRUE(job.runUntil(verdict, 60)) << job.text();
  EXPECT_EQ(job.first(verdict)->culprit, slowRank(3));
}

TEST_F(ControllerFaultTest, WhoLeavesEndsTheValidation) {
  FakeJob& job = slowJob();
  job.deaf = [](Rank, const Message& message) { return is<RunCompute>(message); };
  ASSERT_TRUE(job.runUntil(trapClosed, 60));
  job.run(0.5);
  ASSERT_TRUE(job.anyHeld());
  job.leave(6);
  job.run(1);
  EXPECT_EQ(job.count(trapOpened), 1) << job.text();
  EXPECT_EQ(job.count(verdict), 0);
  // Whoever left is beyond orders.
  EXPECT_EQ(job.controller().state(), instrument::JobState::tracking);
}

TEST_F(ControllerFaultTest, WhoLeavesEndsTheAgreement) {
  FakeJob& job = slowJob();
  job.deaf = [](Rank rank, const Message& message) { return rank == 6 && is<Propose>(message); };
  ASSERT_TRUE(job.runUntil(verdict, 60));
  job.run(1);
  ASSERT_TRUE(job.anyUndecided());
  job.leave(6);
  job.run(1);
  EXPECT_FALSE(job.anyUndecided()) << job.text();
  EXPECT_EQ(job.splits(), std::set{equalSplit});
  EXPECT_EQ(job.count(mitigationRefused), 1);
}

TEST_F(ControllerFaultTest, WhatOneRefusesChangesNothingAnywhereAndIsTriedAFewTimes) {
  for (const bool link : {false, true}) {
    FakeJob& job = start();
    if (link)
      job.links[{0, 2}] = 15;
    else
      job.compute[3] = 2.5;
    job.refusing = {4};
    job.run(120);
    expectNothingHangs(job);
    EXPECT_EQ(job.splits(), std::set{equalSplit});
    EXPECT_EQ(job.rings(dataId), std::set{firstRing});
    EXPECT_EQ(job.count(mitigationRefused), Mitigation::attempts) << job.text();
    EXPECT_EQ(job.count(mitigationApplied), 0);
    EXPECT_EQ(job.controller().mitigations().at({link ? "reroute" : "split", "refused"}), Mitigation::attempts);
    // The culprit is known all the same, and its relief is seen.
    job.links.clear();
    job.compute.clear();
    job.run(60);
    EXPECT_EQ(job.count(relief), 1) << job.text();
  }
}

TEST_F(ControllerFaultTest, ARefusalOnceIsMadeGood) {
  FakeJob& job = slowJob();
  job.refusing = {4};
  ASSERT_TRUE(job.runUntil(mitigationRefused, 60)) << job.text();
  job.refusing.clear();
  job.run(20);
  EXPECT_EQ(job.count(mitigationApplied), 1) << job.text();
  expectNothingHangs(job);

  job.refusing = {2};
  job.compute.clear();
  ASSERT_TRUE(job.runUntil(mitigationRefused, 60, 2)) << job.text();
  EXPECT_NE(job.splits(), std::set{equalSplit});
  job.refusing.clear();
  job.run(20);
  EXPECT_EQ(job.count(mitigationUndone), 1) << job.text();
  EXPECT_EQ(job.splits(), std::set{equalSplit});
}

TEST_F(ControllerFaultTest, SwitchesOffInEveryPhase) {
  using instrument::JobState;
  for (const JobState phase :
       {JobState::starting, JobState::tracking, JobState::profiling, JobState::validating, JobState::mitigating}) {
    FakeJob job(automatic());
    bool reached = phase == JobState::starting;
    if (!reached) {
      ASSERT_TRUE(job.runUntil(baselineTaken, 30));
      job.run(5);
      reached = phase == JobState::tracking;
      job.compute[3] = 2.5;
      if (phase == JobState::mitigating)
        job.deaf = [](Rank rank, const Message& message) { return rank == 6 && is<Propose>(message); };
      for (int i = 0; i < 2000 && !reached; ++i) {
        job.run(0.05);
        reached = job.controller().state() == phase;
      }
    }
    ASSERT_TRUE(reached) << nameOf(phase);
    job.run(0.3);
    job.deaf = nullptr;
    const auto splits = job.splits();
    job.say(2, RequestOff{});
    job.run(1);
    EXPECT_EQ(job.off(), std::set{true}) << nameOf(phase);
    EXPECT_EQ(job.count(switchedOff), 1);
    expectNothingHangs(job);
    EXPECT_EQ(job.splits(), splits);
    const auto said = job.events().size();
    job.compute[1] = 3;
    job.run(60);
    EXPECT_EQ(job.events().size(), said) << job.text();
    EXPECT_EQ(job.controller().state(), JobState::off);
  }
}

TEST_F(ControllerFaultTest, ALongHoldUsesTheBudgetUp) {
  ControllerSettings settings = automatic();
  settings.trapBudgetPercent = 2;
  FakeJob& job = start(settings);
  job.links[{0, 2}] = 15;
  // Tests that never answer: the trap lasts its whole 5 s and finds nobody.
  job.deaf = [](Rank, const Message& message) { return is<RunCompute>(message) || is<RunWave>(message); };
  ASSERT_TRUE(job.runUntil(trapOpened, 60)) << job.text();
  const double held = job.first(trapOpened)->durationSeconds, at = seconds(job.first(trapOpened)->time);
  EXPECT_GT(held, 4);
  job.deaf = nullptr;
  ASSERT_TRUE(job.runUntil(trapClosed, 600, 2)) << job.text();
  const double again = seconds(job.last(trapClosed)->time);
  EXPECT_GT(again, at + 60) << job.text();
  EXPECT_GE(0.02 * again, held);
  job.run(30);
  EXPECT_EQ(job.count(verdict), 1) << job.text();
}

TEST_F(ControllerFaultTest, AHandOverLeavesNothingBehindAndKnowsWhatIsInForce) {
  FakeJob& job = slowJob();
  job.deaf = [](Rank rank, const Message& message) { return rank == 6 && is<Propose>(message); };
  ASSERT_TRUE(job.runUntil(verdict, 60));
  job.run(1);
  ASSERT_TRUE(job.anyUndecided());
  job.changeController();
  job.deaf = nullptr;
  job.run(0.5);
  expectNothingHangs(job);
  // For the new one the slow rank is how the job is. What comes on top of it is found all the same.
  ASSERT_TRUE(job.runUntil(baselineTaken, 60, 2));
  job.run(20);
  job.links[{2, 4}] = 40;
  job.run(60);
  EXPECT_EQ(job.last(verdict)->culprit, slowLink(2, 4)) << job.text();
  EXPECT_EQ(job.rings(dataId).size(), 1u);
  EXPECT_NE(job.rings(dataId), std::set{firstRing});
}

TEST_F(ControllerFaultTest, WhoTakesOverAtTheEndSaysNothing) {
  FakeJob& job = start();
  job.controller().end(9);
  const auto said = job.events().size();
  job.changeController();
  job.run(2);
  job.controller().end(9);
  EXPECT_EQ(job.events().size(), said) << job.text();
}

TEST_F(ControllerFaultTest, AHandOverInAValidationLetsTheJobGo) {
  FakeJob& job = slowJob();
  job.deaf = [](Rank, const Message& message) { return is<RunCompute>(message); };
  ASSERT_TRUE(job.runUntil(trapClosed, 60));
  job.run(0.5);
  ASSERT_TRUE(job.anyHeld());
  job.changeController();
  job.run(0.2);
  EXPECT_FALSE(job.anyHeld());
}

}  // namespace
}  // namespace falcon::control::test
