// Suspend and resume in the controller: one at a time, lifted by whatever happens, nothing detected meanwhile.
#include <gmock/gmock.h>

#include "controller_fixture.h"

namespace falcon::control::test {
namespace {

using SuspensionTest = ControllerTest;

TEST_F(SuspensionTest, HoldsTheJobUntilAnyRankResumesIt) {
  FakeJob& job = start();
  job.say(2, AskSuspend{1, 60});
  job.run(1);
  EXPECT_TRUE(job.anyHeld());
  EXPECT_EQ(job.lastAnswer(1), SuspendOutcome::done);
  EXPECT_EQ(job.controller().state(), instrument::JobState::suspended);
  EXPECT_EQ(job.count(suspended), 1) << job.text();
  job.run(30);
  EXPECT_TRUE(job.anyHeld());
  job.say(5, AskResume{2});
  job.run(1);
  EXPECT_FALSE(job.anyHeld());
  EXPECT_EQ(job.lastAnswer(2), SuspendOutcome::done);
  ASSERT_EQ(job.count(resumed), 1) << job.text();
  EXPECT_NEAR(job.last(resumed)->durationSeconds, 31, 1);
  job.run(60);
  EXPECT_EQ(job.count(onset), 0) << "the pause is nobody's slowness\n" << job.text();
}

TEST_F(SuspensionTest, ASecondOneIsRefusedAndSoIsResumingNothing) {
  FakeJob& job = start();
  job.say(0, AskResume{1});
  job.run(1);
  EXPECT_EQ(job.lastAnswer(1), SuspendOutcome::notSuspended);
  job.say(0, AskSuspend{2, 60});
  job.say(0, AskSuspend{2, 60});  // the same once more, as after a change of the controller
  job.say(1, AskSuspend{3, 60});
  job.run(1);
  EXPECT_EQ(job.lastAnswer(2), SuspendOutcome::done);
  EXPECT_EQ(job.lastAnswer(3), SuspendOutcome::already);
  EXPECT_TRUE(job.anyHeld());
}

TEST_F(SuspensionTest, WhoAsksAgainWhileItClosesOrHoldsIsAnsweredToThat) {
  FakeJob& job = start();
  job.say(2, AskSuspend{1, 60});
  job.say(2, AskSuspend{1, 60, 1});
  job.run(1);
  EXPECT_EQ(job.lastAnswer(1), std::nullopt);
  EXPECT_EQ(job.lastAnswer(1, 1), SuspendOutcome::done);
  job.say(2, AskSuspend{1, 60, 2});
  job.run(1);
  EXPECT_EQ(job.lastAnswer(1, 2), SuspendOutcome::done);
  EXPECT_EQ(job.count(suspended), 1) << job.text();
}

// As where the controller changes at a job's start: the old one's refusal is no longer what the asker waits for.
TEST_F(SuspensionTest, WhatOneControllerRefusedAsItWentItsSuccessorAnswers) {
  FakeJob& job = start();
  job.deaf = [](Rank rank, const Message& message) { return rank == 5 && std::holds_alternative<CloseTrap>(message); };
  job.say(2, AskSuspend{1, 60});
  job.run(1);
  job.controller().handOver();
  job.deaf = nullptr;
  job.say(2, AskSuspend{1, 60, 1});
  job.run(1);
  EXPECT_EQ(job.lastAnswer(1), SuspendOutcome::givenUp);
  EXPECT_EQ(job.lastAnswer(1, 1), SuspendOutcome::done);
}

TEST_F(SuspensionTest, OfAControllerThatDiedIsEndedByItsSuccessorsWord) {
  FakeJob& job = start();
  job.controller().inherit(true, 3s);
  job.controller().inherit(false, 2s);
  ASSERT_EQ(job.count(resumed), 1) << job.text();
  EXPECT_DOUBLE_EQ(job.last(resumed)->durationSeconds, 3);
  ASSERT_EQ(job.count(trapOpened), 1) << job.text();
  EXPECT_THAT(job.last(trapOpened)->text, testing::HasSubstr("the controller died while the job was held"));
}

TEST_F(SuspensionTest, EndsAtItsLimit) {
  FakeJob& job = start();
  job.say(2, AskSuspend{1, 3});
  ASSERT_TRUE(job.runUntil(trapTimedOut, 10)) << job.text();
  job.run(1);
  EXPECT_FALSE(job.anyHeld());
  EXPECT_NEAR(job.last(trapTimedOut)->durationSeconds, 3, 0.3);
}

TEST_F(SuspensionTest, IsLiftedWhereARankDoesNotCome) {
  ControllerSettings settings = automatic();
  settings.trapEntry = 2s;
  FakeJob& job = start(settings);
  job.deaf = [](Rank rank, const Message& message) { return rank == 5 && std::holds_alternative<CloseTrap>(message); };
  job.say(2, AskSuspend{1, 60});
  ASSERT_TRUE(job.runUntil(trapTimedOut, 10)) << job.text();
  job.run(1);
  EXPECT_FALSE(job.anyHeld());
  EXPECT_EQ(job.lastAnswer(1), SuspendOutcome::notAllCame);
  EXPECT_NE(job.last(trapTimedOut)->text.find("rank 5"), std::string::npos) << job.text();
  EXPECT_NEAR(job.last(trapTimedOut)->durationSeconds, 2, 0.3);
}

TEST_F(SuspensionTest, IsLiftedWhenARankDies) {
  FakeJob& job = start();
  job.say(2, AskSuspend{1, 60});
  job.run(1);
  job.leave(6);
  job.run(1);
  EXPECT_FALSE(job.anyHeld());
  EXPECT_NE(job.last(resumed)->text.find("rank 6 died"), std::string::npos) << job.text();
}

TEST_F(SuspensionTest, OfARankThatEndsInOrderNothingIsSaid) {
  FakeJob& job = start();
  job.say(2, AskSuspend{1, 60});
  job.run(1);
  job.say(6, Leaving{});
  job.run(1);
  job.leave(6);
  job.run(1);
  EXPECT_TRUE(job.anyHeld());
  EXPECT_EQ(job.count(resumed), 0);
}

TEST_F(SuspensionTest, IsLiftedByAChangeOfTheControllerAndByOff) {
  FakeJob& job = start();
  job.say(2, AskSuspend{1, 60});
  job.run(1);
  job.controller().handOver();
  job.run(1);
  EXPECT_FALSE(job.anyHeld());
  job.say(2, AskSuspend{2, 60});
  job.run(1);
  EXPECT_TRUE(job.anyHeld());
  job.say(3, RequestOff{});
  job.run(1);
  EXPECT_FALSE(job.anyHeld());
}

TEST_F(SuspensionTest, WaitsForAValidationAndEndsAProfiling) {
  FakeJob& job = start();
  job.compute[3] = 2.5;
  ASSERT_TRUE(job.runUntil(trapClosed, 60)) << job.text();
  job.say(2, AskSuspend{1, 20});
  ASSERT_TRUE(job.runUntil(suspended, 20)) << job.text();
  EXPECT_EQ(job.count(trapOpened), 1) << job.text();
  ASSERT_TRUE(job.runUntil(trapTimedOut, 30)) << job.text();

  FakeJob& other = start();
  other.compute[3] = 2.5;
  ASSERT_TRUE(other.runUntil(onset, 60)) << other.text();
  other.say(2, AskSuspend{1, 20});
  ASSERT_TRUE(other.runUntil(suspended, 2)) << other.text();
  ASSERT_TRUE(other.runUntil(verdict, 60)) << "it is profiled after that\n" << other.text();
  EXPECT_EQ(other.last(verdict)->culprit, slowRank(3));
}

}  // namespace
}  // namespace falcon::control::test
