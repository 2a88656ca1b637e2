// A job that is a little slower for long: told with whom it likely comes from, and never held.
#include <gmock/gmock.h>

#include "controller_fixture.h"

namespace falcon::control::test {
namespace {

using testing::HasSubstr;

class Minor : public ControllerTest {
 protected:
  /// Healthy for long enough that its level is known.
  FakeJob& startOld(ControllerSettings settings = automatic()) {
    FakeJob& job = start(std::move(settings));
    job.run(40);
    EXPECT_THAT(job.story(), testing::IsEmpty()) << job.text();
    return job;
  }
  static void expectNotHeld(FakeJob& job) {
    EXPECT_EQ(job.count(trapClosed), 0) << job.text();
    EXPECT_EQ(job.count(onset), 0) << job.text();
    EXPECT_EQ(job.count(verdict), 0) << job.text();
    EXPECT_EQ(job.controller().activeCount(), 0);
  }
};

TEST_F(Minor, OfARankNamesIt) {
  FakeJob& job = startOld();
  job.compute[3] = 1.06;
  ASSERT_TRUE(job.runUntil(minor, 150)) << job.text();
  const Event event = *job.first(minor);
  EXPECT_EQ(event.severity, 1);
  EXPECT_EQ(event.culprit, slowRank(3)) << event.text;
  EXPECT_GT(event.afterMilliseconds, 1.045 * event.beforeMilliseconds);
  EXPECT_LT(event.afterMilliseconds, 1.1 * event.beforeMilliseconds);
  EXPECT_THAT(event.text, HasSubstr("; likely rank 3: rank 3 computes "));
  EXPECT_TRUE(job.controller().isMinor());
  job.run(100);
  EXPECT_EQ(job.count(minor), 1) << "it is said once";
  job.compute[3] = 1;
  ASSERT_TRUE(job.runUntil(minorOver, 60)) << job.text();
  EXPECT_FALSE(job.controller().isMinor());
  expectNotHeld(job);
}

// Once, while the slow one is looked for, another rank loses more than the slowness costs in all these iterations.
TEST_F(Minor, OfARankNamesItThoughAnotherStoodStillForAMoment) {
  FakeJob& job = startOld();
  job.compute[3] = 1.06;
  const int orders = job.sent<SetProfiling>();
  for (int steps = 0; job.sent<SetProfiling>() == orders && steps < 4000; ++steps) job.run(0.05);
  ASSERT_EQ(job.count(minor), 0) << job.text();
  job.run(1);
  job.loading[1] = 2;
  job.run(0.5);
  job.loading.clear();
  ASSERT_TRUE(job.runUntil(minor, 60)) << job.text();
  EXPECT_EQ(job.first(minor)->culprit, slowRank(3)) << job.text();
  expectNotHeld(job);
}

TEST_F(Minor, OfALinkNamesIt) {
  FakeJob& job = startOld();
  job.links[{2, 4}] = 1.4;
  ASSERT_TRUE(job.runUntil(minor, 150)) << job.text();
  EXPECT_EQ(job.first(minor)->culprit, slowLink(2, 4)) << job.text();
  EXPECT_THAT(job.first(minor)->text, HasSubstr("communication among ranks 0, 2, 4, 6 ("));
  expectNotHeld(job);
}

TEST_F(Minor, OfAllRanksAlikeNamesNobody) {
  FakeJob& job = startOld();
  job.everyone = 1.06;
  ASSERT_TRUE(job.runUntil(minor, 150)) << job.text();
  EXPECT_EQ(job.first(minor)->culprit.kind, CulpritKind::none);
  EXPECT_THAT(job.first(minor)->text, HasSubstr("nobody has half of the delay"));
  expectNotHeld(job);
}

TEST_F(Minor, OfAHostWhoseProcessorsOthersTakeNamesTheHost) {
  FakeJob job(automatic());
  job.othersCores = 0.2;
  ASSERT_TRUE(job.runUntil(baselineTaken, 30)) << job.text();
  job.run(45);
  job.everyone = 1.07;
  job.othersCores = 1.5;
  ASSERT_TRUE(job.runUntil(minor, 150)) << job.text();
  EXPECT_EQ(job.first(minor)->culprit.host, "host") << job.text();
  expectNotHeld(job);
}

TEST_F(Minor, EndsWhereAnOnsetBegins) {
  FakeJob& job = startOld();
  job.compute[3] = 1.06;
  ASSERT_TRUE(job.runUntil(minor, 150)) << job.text();
  job.compute[3] = 2;
  ASSERT_TRUE(job.runUntil(verdict, 60)) << job.text();
  EXPECT_EQ(job.first(verdict)->culprit, slowRank(3));
  ASSERT_EQ(job.count(minorOver), 1) << job.text();
  EXPECT_LE(job.first(minorOver)->time, job.first(onset)->time);
  EXPECT_FALSE(job.controller().isMinor());
}

TEST_F(Minor, IsHalfOfWhatTheJobIsToldAnOnsetIs) {
  ControllerSettings settings = automatic();
  settings.onsetThresholdPercent = 30;
  FakeJob& job = startOld(settings);
  job.compute[3] = 1.1;
  job.run(100);
  EXPECT_THAT(job.story(), testing::IsEmpty()) << job.text();
  job.compute[3] = 1.22;
  ASSERT_TRUE(job.runUntil(minor, 150)) << job.text();
  EXPECT_EQ(job.first(minor)->severity, 1);
  EXPECT_THAT(job.first(minor)->text, HasSubstr("30 % would be an onset"));
  expectNotHeld(job);
}

}  // namespace
}  // namespace falcon::control::test
