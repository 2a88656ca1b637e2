#include "diagnose/hang_analysis.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/jobs/ranks.h"

namespace falcon::diagnose {
namespace {

using instrument::ProcessState;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using tests::MadeUpJob;
using Kind = Finding::Kind;

TEST(HangAnalysis, NobodyIsToBlameWhileCallsAreYoungOrAllHaveLeft) {
  MadeUpJob job(3);
  EXPECT_FALSE(analyseHang(job.ranks, 5s).hang());
  for (Rank rank = 0; rank < 3; ++rank) job.finished(Operation::allReduce, rank, -1, 0, 100s, 101s);
  job.inFlight(Operation::allReduce, 0, -1, 1, 107s);
  const HangFindings report = analyseHang(job.ranks, 5s);
  EXPECT_FALSE(report.hang());
  EXPECT_THAT(report.ranks, SizeIs(3));
  EXPECT_THAT(report.communicators, SizeIs(1));
  EXPECT_TRUE(analyseHang(job.ranks, 3s).hang());
}

TEST(HangAnalysis, NamesWhoHasNotEnteredAndHowLongTheOthersWait) {
  MadeUpJob job(8);
  for (Rank rank = 0; rank < 8; ++rank) job.finished(Operation::allReduce, rank, -1, 1040, 90s, 97s);
  for (Rank rank = 0; rank < 8; ++rank)
    if (rank != 3) job.inFlight(Operation::allReduce, rank, -1, 1041, 97s + 700ms + rank * 10ms);
  const HangFindings report = analyseHang(job.ranks, 5s);
  ASSERT_THAT(report.findings, SizeIs(1));
  const Finding& finding = report.findings[0];
  EXPECT_EQ(finding.kind, Kind::notEntered);
  EXPECT_TRUE(finding.cause);
  ASSERT_THAT(finding.culprits, SizeIs(1));
  EXPECT_EQ(finding.culprits[0].jobRank, 3);
  EXPECT_THAT(finding.waiting, SizeIs(7));
  EXPECT_EQ(finding.longest, 12s + 300ms);
  EXPECT_THAT(finding.text, HasSubstr("rank 3 has not entered AllReduce #1041"));
  EXPECT_THAT(finding.text, HasSubstr("(data parallel 0 \"dp\"), 7 others wait in it for 12.3 s"));
  EXPECT_THAT(finding.text, HasSubstr("outside of the library for 13.0 s, after AllReduce #1040"));
}

TEST(HangAnalysis, SaysInWhichRangeOfTheApplicationRanksAre) {
  MadeUpJob job(4);
  for (Rank rank = 0; rank < 4; ++rank) job.finished(Operation::allReduce, rank, -1, 7, 90s, 91s);
  for (const Rank rank : {0, 1, 3}) job.inFlight(Operation::allReduce, rank, -1, 8, 98s);
  job.ranks[2].ranges = {{"step", 0, 1002, 92s}, {"data loading", 1, 1002, 95s}, {"prefetch", 0, 1777, 93s}};
  job.ranks[0].ranges = {{"step", 0, 1000, 97s}};
  job.ranks[1].log.inFlight[0].thread = 1888;
  job.ranks[1].ranges = {{"wait", 0, 1001, 99s}};
  const HangFindings report = analyseHang(job.ranks, 5s);
  ASSERT_THAT(report.findings, SizeIs(1));
  EXPECT_THAT(report.findings[0].text,
              HasSubstr("outside of the library for 19.0 s, after AllReduce #7 of 100 x float, in range step > data "
                        "loading for 15.0 s"));
  EXPECT_THAT(report.ranks[0].text, HasSubstr(" for 12.0 s, in range step for 13.0 s"));
  EXPECT_THAT(report.ranks[1].text, HasSubstr(" for 12.0 s; its main thread is in range wait for 11.0 s"));
  EXPECT_THAT(report.ranks[2].ranges, SizeIs(3));
  EXPECT_THAT(report.ranks[3].text, testing::Not(HasSubstr("range")));
}

// In a Reduce only the root needs all: the others go on and are not missing.
TEST(HangAnalysis, WhoIsAheadIsNotMissing) {
  MadeUpJob job(3);
  job.inFlight(Operation::reduce, 0, 0, 5, 100s);
  job.finished(Operation::reduce, 1, 0, 5, 100s, 100s + 1ms);
  job.inFlight(Operation::reduce, 1, 0, 6, 101s);
  job.finished(Operation::reduce, 2, 0, 4, 99s, 100s);
  const HangFindings report = analyseHang(job.ranks, 5s);
  ASSERT_THAT(report.findings, SizeIs(1));
  ASSERT_THAT(report.findings[0].culprits, SizeIs(1));
  EXPECT_EQ(report.findings[0].culprits[0].jobRank, 2);
  EXPECT_EQ(report.findings[0].call.sequence, 5u);
}

TEST(HangAnalysis, AnEarlierCallThatDifferedIsTheMismatch) {
  MadeUpJob job(3);
  for (Rank rank = 0; rank < 3; ++rank) {
    job.finished(Operation::allReduce, rank, -1, 6, 100s, 101s);
    job.finished(Operation::allReduce, rank, -1, 7, 101s, 102s).count = rank == 1 ? 7 : 8;
    job.inFlight(Operation::allReduce, rank, -1, 8, 102s);
  }
  const HangFindings report = analyseHang(job.ranks, 5s);
  ASSERT_THAT(report.findings, SizeIs(1));
  EXPECT_EQ(report.findings[0].kind, Kind::mismatch);
  EXPECT_EQ(report.findings[0].call.sequence, 7u);
  EXPECT_EQ(report.findings[0].culprits.at(0).jobRank, 1);
}

TEST(HangAnalysis, AStoppedOrDeadMemberInsideOfTheCallIsNamed) {
  for (const auto process : {ProcessState::stopped, ProcessState::dead}) {
    MadeUpJob job(3);
    for (Rank rank = 0; rank < 3; ++rank) job.inFlight(Operation::allReduce, rank, -1, 0, 100s);
    job.ranks[2].process = process;
    const HangFindings report = analyseHang(job.ranks, 5s);
    ASSERT_THAT(report.findings, SizeIs(1));
    EXPECT_EQ(report.findings[0].kind, Kind::stuck);
    ASSERT_THAT(report.findings[0].culprits, SizeIs(1));
    EXPECT_EQ(report.findings[0].culprits[0].jobRank, 2);
  }
}

TEST(HangAnalysis, MessagesThatDoNotMeetAreACircleWhenBothSend) {
  MadeUpJob job(2);
  job.inFlight(Operation::send, 0, 1, 4, 100s);
  job.inFlight(Operation::send, 1, 0, 9, 100s);
  const HangFindings report = analyseHang(job.ranks, 5s);
  ASSERT_THAT(report.findings, SizeIs(2));
  for (const Finding& finding : report.findings) {
    EXPECT_EQ(finding.kind, Kind::noPartner);
    EXPECT_FALSE(finding.cause);
  }
  EXPECT_TRUE(report.circle);
}

TEST(HangAnalysis, EndsOfAMessageThatDifferAreAMismatch) {
  MadeUpJob job(2);
  job.inFlight(Operation::send, 0, 1, 4, 100s);
  job.inFlight(Operation::receive, 1, 0, 4, 100s).count = 50;
  const HangFindings report = analyseHang(job.ranks, 5s);
  ASSERT_THAT(report.findings, SizeIs(1));
  EXPECT_EQ(report.findings[0].kind, Kind::mismatch);
}

TEST(HangAnalysis, RanksWithoutALogHereAreUnknownAndNotBlamed) {
  MadeUpJob job(4);
  for (Rank rank = 0; rank < 2; ++rank) job.inFlight(Operation::allReduce, rank, -1, 0, 100s);
  job.ranks.resize(3);
  const HangFindings report = analyseHang(job.ranks, 5s);
  ASSERT_THAT(report.findings, SizeIs(1));
  ASSERT_THAT(report.findings[0].culprits, SizeIs(1));
  EXPECT_EQ(report.findings[0].culprits[0].jobRank, 2);
  ASSERT_THAT(report.communicators[0].unknown, SizeIs(1));
  EXPECT_EQ(report.communicators[0].unknown[0].jobRank, 3);
}

// Calls of the vendor's engine return at once, so nobody is seen in one.
TEST(HangAnalysis, OnTheVendorsEngineWhoHasCalledLessIsMissing) {
  MadeUpJob job(3);
  for (Rank rank = 0; rank < 3; ++rank) {
    job.ranks[rank].log.communicators[0].vendor = true;
    job.finished(Operation::allReduce, rank, -1, 0, 100s, 100s);
    if (rank > 0) job.finished(Operation::allReduce, rank, -1, 1, 101s, 101s);
  }
  const HangFindings report = analyseHang(job.ranks, 5s);
  ASSERT_THAT(report.findings, SizeIs(1));
  EXPECT_EQ(report.findings[0].culprits.at(0).jobRank, 0);
  EXPECT_EQ(report.findings[0].call.sequence, 1u);
  EXPECT_FALSE(analyseHang(job.ranks, 20s).hang());
}

TEST(HangAnalysis, RanksThatAreThreadsOfOneProcessAreToldApart) {
  MadeUpJob two(2);
  auto& first = two.ranks[0].log;
  first.communicators.push_back(two.ranks[1].log.communicators[0]);
  for (auto& view : first.communicators)
    for (auto& member : view.members) member.jobRank = 0;
  two.ranks.resize(1);
  two.inFlight(Operation::allReduce, 0, -1, 0, 100s);
  const HangFindings report = analyseHang(two.ranks, 5s);
  ASSERT_THAT(report.findings, SizeIs(1));
  EXPECT_THAT(report.findings[0].text, HasSubstr("rank 1 of \"dp\" has not entered"));
  EXPECT_TRUE(report.findings[0].cause);
}

/// All but rank 1 failed in AllReduce #20, and then all are gone in this way.
MadeUpJob crashed(int size, ProcessState process) {
  MadeUpJob job(size);
  for (Rank rank = 0; rank < size; ++rank) {
    job.finished(Operation::allReduce, rank, -1, 19, 90s, 91s);
    if (rank != 1) {
      auto& log = job.ranks[rank].log;
      job.inFlight(Operation::allReduce, rank, -1, 20, 106s);
      log.communicators[0].failure = log.inFlight.back();
      log.communicators[0].live = process == ProcessState::dead;
      log.inFlight.clear();
    }
    job.ranks[rank].process = rank == 1 ? ProcessState::dead : process;
  }
  job.ranks[1].now = 105s;
  return job;
}

TEST(HangAnalysis, AfterTheCrashTheFailedCallNamesWhoHadDied) {
  for (const auto others : {ProcessState::dead, ProcessState::ended}) {
    const MadeUpJob job = crashed(4, others);
    const HangFindings report = analyseHang(job.ranks, 5s);
    EXPECT_TRUE(report.over);
    ASSERT_THAT(report.findings, SizeIs(1)) << nameOf(others);
    const Finding& finding = report.findings[0];
    EXPECT_EQ(finding.kind, Kind::failed);
    ASSERT_THAT(finding.culprits, SizeIs(1));
    EXPECT_EQ(finding.culprits[0].jobRank, 1);
    EXPECT_THAT(finding.waiting, SizeIs(3));
    EXPECT_THAT(finding.text,
                HasSubstr("AllReduce #20 of 100 x float among ranks 0, 1, 2, 3 (data parallel 0 \"dp\") has "
                          "failed on ranks 0, 2, 3, entered 4.0 s before the end; rank 1: its process has died "
                          "(1001 on host), it was outside of the library for 14.0 s"));
    EXPECT_THAT(report.ranks[1].text, HasSubstr("died 5.0 s before the last one: outside of the library"));
  }
}

TEST(HangAnalysis, AfterTheCrashDifferentCallsAreTold) {
  for (const auto others : {ProcessState::dead, ProcessState::ended}) {
    MadeUpJob job = crashed(3, others);
    job.inFlight(Operation::broadcast, 1, 0, 20, 104s);
    const HangFindings report = analyseHang(job.ranks, 5s);
    ASSERT_THAT(report.findings, SizeIs(1));
    EXPECT_EQ(report.findings[0].kind, Kind::mismatch);
    EXPECT_THAT(report.findings[0].text,
                HasSubstr("rank 1 called Broadcast #20 of 100 x float (root 0), but ranks 0, 2 "
                          "called AllReduce #20 of 100 x float (sum)"));
  }
}

// Rank 0 failed since rank 1 had died, and left; for that rank 2 failed, on another communicator.
TEST(HangAnalysis, AfterTheCrashAFailureForOneThatFailedItselfFollows) {
  MadeUpJob job = crashed(3, ProcessState::dead);
  auto second = job.ranks[0].log.communicators[0];
  second.id = 0xdef;
  second.failure.reset();
  second.size = 2;
  second.members = {second.members[0], second.members[2]};
  job.ranks[2].log.communicators[0].failure.reset();
  for (const Rank rank : {0, 2}) {
    second.rank = rank / 2;
    job.ranks[rank].log.communicators.push_back(second);
  }
  CallRecord failed = MadeUpJob::made(Operation::allReduce, 1, -1, 3, 109s);
  failed.communicator = 0xdef;
  job.ranks[2].log.communicators[1].failure = failed;
  const HangFindings report = analyseHang(job.ranks, 5s);
  ASSERT_THAT(report.findings, SizeIs(2));
  EXPECT_TRUE(report.findings[0].cause);
  EXPECT_EQ(report.findings[0].communicator, tests::world);
  EXPECT_FALSE(report.findings[1].cause);
  EXPECT_EQ(report.findings[1].culprits.at(0).jobRank, 0);
}

// The end of a job takes all: nobody is to blame for it.
TEST(HangAnalysis, AfterTheEndOfAHangItsCauseIsTheSame) {
  for (const auto process : {ProcessState::alive, ProcessState::dead}) {
    MadeUpJob job(3);
    for (Rank rank = 0; rank < 3; ++rank) job.ranks[rank].process = process;
    for (const Rank rank : {0, 1}) job.inFlight(Operation::allReduce, rank, -1, 0, 100s);
    const HangFindings missing = analyseHang(job.ranks, 5s);
    ASSERT_THAT(missing.findings, SizeIs(1));
    EXPECT_EQ(missing.findings[0].culprits.at(0).jobRank, 2);
    job.inFlight(Operation::allReduce, 2, -1, 0, 100s);
    const HangFindings inside = analyseHang(job.ranks, 5s);
    ASSERT_THAT(inside.findings, SizeIs(1));
    EXPECT_EQ(inside.findings[0].kind, Kind::stuck);
    EXPECT_FALSE(inside.findings[0].cause);
    EXPECT_THAT(inside.findings[0].culprits, IsEmpty());
    EXPECT_FALSE(analyseHang(job.ranks, 20s).hang());
  }
}

}  // namespace
}  // namespace falcon::diagnose
