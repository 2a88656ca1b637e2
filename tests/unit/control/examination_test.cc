// All tests for somebody who asked: the figures go to him, and nothing else changes.
#include <gtest/gtest.h>

#include "controller_fixture.h"
#include "validate/examination.h"

namespace falcon::control::test {
namespace {

using ExaminationTest = ControllerTest;

TEST_F(ExaminationTest, TestsEverybodyAndAccusesNobody) {
  FakeJob& job = start();
  job.compute[3] = 2.5;  // no onset yet: what is said is what the tests find
  job.say(2, AskExamination{1});
  job.say(2, AskExamination{1});  // the same once more
  job.say(5, AskExamination{2});
  job.run(5);
  EXPECT_FALSE(job.anyHeld());
  EXPECT_NE(job.examined(2).value().problem, "");
  const auto answer = job.examined(1);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->problem, "");
  const auto examination = validate::decodeExamination(answer->content);
  ASSERT_TRUE(examination) << examination.error().message();
  ASSERT_EQ(examination->ranks.size(), 8u);
  for (const auto& rank : examination->ranks)
    EXPECT_EQ(rank.gigaflops < 6, rank.rank == 3) << rank.rank << ": " << rank.gigaflops;
  EXPECT_FALSE(examination->links.empty());
  EXPECT_EQ(job.count(trapClosed), 1);
  EXPECT_EQ(job.count(trapOpened), 1);
  EXPECT_EQ(job.count(verdict), 0) << job.text();
  EXPECT_EQ(job.controller().activeCount(), 0);
}

TEST_F(ExaminationTest, DoesNotCountAsAnOnsetAndLeavesDetectionAsItWas) {
  FakeJob& job = start();
  for (std::uint64_t request = 1; request <= 3; ++request) {
    job.say(0, AskExamination{request});
    job.run(20);
    EXPECT_EQ(job.examined(request).value().problem, "");
  }
  EXPECT_EQ(job.count(onset), 0) << job.text();
  job.compute[3] = 2.5;
  ASSERT_TRUE(job.runUntil(verdict, 60)) << job.text();
  EXPECT_EQ(job.last(verdict)->culprit, slowRank(3));
}

TEST_F(ExaminationTest, WaitsForAValidationAndIsRefusedWhileSuspended) {
  FakeJob& job = start();
  job.compute[3] = 2.5;
  ASSERT_TRUE(job.runUntil(trapClosed, 60)) << job.text();
  job.say(2, AskExamination{1});
  ASSERT_TRUE(job.runUntil(verdict, 20)) << job.text();
  job.run(10);
  EXPECT_EQ(job.examined(1).value().problem, "");
  job.say(2, AskSuspend{2, 60});
  job.run(1);
  job.say(2, AskExamination{3});
  job.run(1);
  EXPECT_EQ(job.examined(3).value().problem, "the job is suspended");
}

TEST_F(ExaminationTest, IsAnsweredWhateverHappens) {
  ControllerSettings settings = automatic();
  settings.trapEntry = 2s;
  FakeJob& job = start(settings);
  job.deaf = [](Rank rank, const Message& message) { return rank == 5 && std::holds_alternative<CloseTrap>(message); };
  job.say(2, AskExamination{1});
  ASSERT_TRUE(job.runUntil(trapTimedOut, 10)) << job.text();
  job.run(1);
  EXPECT_FALSE(job.anyHeld());
  EXPECT_NE(job.examined(1).value().problem, "");

  job.deaf = [](Rank, const Message& message) { return std::holds_alternative<RunCompute>(message); };
  job.say(2, AskExamination{2});
  job.run(1);
  EXPECT_TRUE(job.anyHeld());
  job.say(3, RequestOff{});
  job.run(1);
  EXPECT_FALSE(job.anyHeld());
  EXPECT_NE(job.examined(2).value().problem, "");
}

}  // namespace
}  // namespace falcon::control::test
