// A host whose processors others take: told from what the kernel counts, without holding the job.
#include <gmock/gmock.h>

#include "controller_fixture.h"

namespace falcon::control::test {
namespace {

using testing::HasSubstr;

class HostSlowness : public ControllerTest {
 protected:
  static constexpr double usualOthers = 0.2;

  /// A healthy job whose members tell of their processors.
  FakeJob& startTelling() {
    job = std::make_unique<FakeJob>(automatic());
    job->othersCores = usualOthers;
    EXPECT_TRUE(job->runUntil(baselineTaken, 30)) << job->text();
    job->run(5);
    return *job;
  }

  std::unique_ptr<FakeJob> job;
};

TEST_F(HostSlowness, OfOtherProgramsIsNamedWithoutATrapAndRelieved) {
  FakeJob& job = startTelling();
  job.everyone = 1.3;
  job.othersCores = 2.5;
  ASSERT_TRUE(job.runUntil(verdict, 20)) << job.text();
  EXPECT_EQ(job.first(verdict)->culprit.kind, CulpritKind::host);
  EXPECT_EQ(job.first(verdict)->culprit.host, "host");
  EXPECT_THAT(job.first(verdict)->text, HasSubstr("host host is slow: CPU contention from outside"));
  EXPECT_THAT(job.first(verdict)->text, HasSubstr("use 2.5 of its 8 processors (0.2 when the job was healthy)"));
  EXPECT_EQ(job.controller().activeCount(CulpritKind::host), 1);
  job.run(10);
  job.everyone = 1;
  job.othersCores = usualOthers;
  ASSERT_TRUE(job.runUntil(relief, 20)) << job.text();
  EXPECT_EQ(job.last(relief)->culprit.kind, CulpritKind::host);
  job.run(10);
  EXPECT_EQ(job.controller().activeCount(), 0);
  EXPECT_EQ(job.count(verdict), 1) << job.text();
  EXPECT_EQ(job.count(relief), 1) << job.text();
  EXPECT_EQ(job.count(trapClosed), 0) << job.text();
}

// All wait for the one that lost its processor for longest, another one in each iteration: that is more than what the
// ranks' own time explains, and nobody's.
TEST_F(HostSlowness, OfOtherProgramsIsNamedWhereItsRanksLoseTheirProcessorsByTurns) {
  FakeJob& job = startTelling();
  job.everyone = 1.6;
  job.byTurns = 1.3;
  job.othersCores = 4;
  ASSERT_TRUE(job.runUntil(verdict, 20)) << job.text();
  EXPECT_EQ(job.first(verdict)->culprit.kind, CulpritKind::host);
  EXPECT_EQ(job.count(inconclusive), 0) << job.text();
  EXPECT_EQ(job.count(trapClosed), 0) << job.text();
}

// Of a slowness that has another cause the host does not get the blame for the little that it takes.
TEST_F(HostSlowness, IsNotNamedForTheSmallerPart) {
  FakeJob& job = startTelling();
  job.everyone = 1.1;
  job.byTurns = 1.6;
  job.othersCores = 4;
  ASSERT_TRUE(job.runUntil(onset, 20)) << job.text();
  job.run(30);
  EXPECT_EQ(job.count(verdict), 0) << job.text();
}

TEST_F(HostSlowness, MoreProcessorTimeIsNobodysFault) {
  FakeJob& job = startTelling();
  job.everyone = job.processorTime = 1.3;
  ASSERT_TRUE(job.runUntil(inconclusive, 20)) << job.text();
  job.run(20);
  EXPECT_THAT(job.first(inconclusive)->text, HasSubstr("there is more to do, or the processors work more slowly"));
  EXPECT_EQ(job.count(verdict), 0) << job.text();
  EXPECT_EQ(job.count(trapClosed), 0) << job.text();
}

TEST_F(HostSlowness, MoreProcessorTimeDoesNotHideASlowLinkBesideIt) {
  FakeJob& job = startTelling();
  for (Rank rank = 0; rank < 8; ++rank) job.compute[rank] = 1.25;
  job.processorTime = 1.25;
  job.links[{2, 4}] = 1.5;
  ASSERT_TRUE(job.runUntil(verdict, 30)) << job.text();
  EXPECT_EQ(job.first(verdict)->culprit.link, (Link{2, 4})) << job.text();
}

TEST_F(HostSlowness, OfAMomentIsNotSpokenOf) {
  for (const bool tells : {true, false}) {
    FakeJob& job = startTelling();
    if (!tells) job.othersCores = -1;
    job.everyone = job.processorTime = 1.15;
    job.run(2);  // ten iterations
    job.everyone = job.processorTime = 1;
    job.run(20);
    EXPECT_THAT(job.story(), testing::IsEmpty()) << job.text();
    EXPECT_EQ(job.controller().state(), instrument::JobState::tracking);
    job.everyone = job.processorTime = 1.15;
    job.run(20);
    EXPECT_EQ(job.count(onset), 1) << job.text();
    EXPECT_GE(job.count(inconclusive), 1) << job.text();
    EXPECT_EQ(job.count(trapClosed), 0) << job.text();
  }
}

// The baseline may be of a quiet moment: the machine's usual pace is said late, somebody slow at once.
TEST_F(HostSlowness, InAYoungJobHasToLastLonger) {
  FakeJob job(automatic());
  ASSERT_TRUE(job.runUntil(baselineTaken, 30));
  job.everyone = 1.15;
  job.run(8);  // some 35 iterations
  EXPECT_THAT(job.story(), testing::IsEmpty()) << job.text();
  job.run(20);
  EXPECT_EQ(job.count(onset), 1) << job.text();

  FakeJob slower(automatic());
  ASSERT_TRUE(slower.runUntil(baselineTaken, 30));
  slower.everyone = 1.15;
  slower.run(5);
  slower.links[{2, 4}] = 8;
  ASSERT_TRUE(slower.runUntil(verdict, 15)) << slower.text();
  EXPECT_EQ(slower.first(verdict)->culprit.link, (Link{2, 4}));
  EXPECT_LT(slower.first(onset)->time, slower.first(verdict)->time);
}

TEST_F(HostSlowness, DoesNotHideASlowLinkBesideIt) {
  FakeJob& job = startTelling();
  job.everyone = 1.15;
  job.othersCores = 1.6;
  job.links[{2, 4}] = 8;
  ASSERT_TRUE(job.runUntil(verdict, 30)) << job.text();
  EXPECT_EQ(job.first(verdict)->culprit.link, (Link{2, 4})) << job.text();
}

// A program of low priority that takes whatever the job leaves grows by just what the job loses.
TEST_F(HostSlowness, IsNotNamedForWhoFillsTheProcessorsThatASlowLinkLeaves) {
  FakeJob& job = startTelling();
  job.links[{2, 4}] = 8;
  job.othersCores = 4;
  ASSERT_TRUE(job.runUntil(verdict, 30)) << job.text();
  EXPECT_EQ(job.first(verdict)->culprit.link, (Link{2, 4})) << job.text();
  job.run(10);
  EXPECT_EQ(job.controller().activeCount(CulpritKind::host), 0) << job.text();
}

TEST_F(HostSlowness, IsNotNamedForASlowRank) {
  FakeJob& job = startTelling();
  job.compute[3] = 2;
  ASSERT_TRUE(job.runUntil(verdict, 30)) << job.text();
  EXPECT_EQ(job.first(verdict)->culprit.rank, 3) << job.text();
}

}  // namespace
}  // namespace falcon::control::test
