// A slow rank that no split helps: the framework is asked to restart, once slowness has cost as much.
#include <gmock/gmock.h>

#include "controller_fixture.h"

namespace falcon::control {
namespace {

using namespace test;
using testing::HasSubstr;

constexpr topology::Layout oneReplica{1, 4, 1};
constexpr double expected = 20, waited = 0.5, written = 2;

void frameworksAsk(FakeJob& job, std::set<Rank> but = {}) {
  for (Rank rank = 0; rank < 4; ++rank)
    if (!but.contains(rank)) job.say(rank, RestartKnown{true, expected, 0, 40, waited, written});
}

using ControllerRestart = ControllerTest;

TEST_F(ControllerRestart, IsWantedOnceTheLossHasPaidForIt) {
  FakeJob& job = start(automatic(), oneReplica);
  frameworksAsk(job);
  job.compute[2] = 3;
  ASSERT_TRUE(job.runUntil(mitigationApplied, 300)) << job.text();
  const Event restart = *job.first(mitigationApplied);
  job.run(2);
  EXPECT_EQ(restart.culprit, slowRank(2));
  EXPECT_EQ(restart.action, "restart");
  EXPECT_THAT(restart.text, HasSubstr("price of 22.5 s"));
  EXPECT_EQ(job.restartsWithout, (std::set<std::vector<Rank>>{{2}}));
  const Event& onset = *job.first(EventKind::onset);
  const double slow = seconds(restart.time - onset.time);
  const double lost = slow * (1 - onset.beforeMilliseconds / onset.afterMilliseconds);
  EXPECT_GE(lost, 0.9 * (expected + waited + written)) << job.text();
  EXPECT_LE(lost, 1.5 * (expected + waited + written)) << job.text();
}

TEST_F(ControllerRestart, IsAsDearAsTheLastOneWas) {
  FakeJob& job = start(automatic(), oneReplica);
  frameworksAsk(job);
  job.say(1, RestartKnown{true, expected, 5, 40, waited, written});
  job.compute[2] = 3;
  ASSERT_TRUE(job.runUntil(mitigationApplied, 300)) << job.text();
  EXPECT_THAT(job.first(mitigationApplied)->text, HasSubstr("price of 7.5 s"));
}

TEST_F(ControllerRestart, IsAdvisedWhereOneFrameworkDoesNotAsk) {
  FakeJob& job = start(automatic(), oneReplica);
  frameworksAsk(job, {3});
  job.compute[2] = 3;
  job.run(200);
  EXPECT_EQ(job.count(mitigationApplied), 0) << job.text();
  EXPECT_TRUE(job.restartsWithout.empty());
}

TEST_F(ControllerRestart, IsOnlySaidWhereNothingIsToBeDone) {
  ControllerSettings settings = automatic();
  settings.mitigate = MitigateMode::advise;
  FakeJob& job = start(settings, oneReplica);
  frameworksAsk(job);
  job.compute[2] = 3;
  ASSERT_TRUE(job.runUntil(mitigationAdvised, 300)) << job.text();
  EXPECT_THAT(job.first(mitigationAdvised)->text, HasSubstr("a restart would help"));
  EXPECT_TRUE(job.restartsWithout.empty());
}

TEST_F(ControllerRestart, IsNotDoneWhereOneRefuses) {
  FakeJob& job = start(automatic(), oneReplica);
  frameworksAsk(job);
  job.refusing = {1};
  job.compute[2] = 3;
  ASSERT_TRUE(job.runUntil(mitigationRefused, 300)) << job.text();
  EXPECT_TRUE(job.restartsWithout.empty());
}

}  // namespace
}  // namespace falcon::control
