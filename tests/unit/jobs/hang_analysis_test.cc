#include "jobs/hang_analysis.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/jobs/ranks.h"

namespace falcon::jobs {
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
  const HangReport report = analyseHang(job.ranks, 5s);
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
  const HangReport report = analyseHang(job.ranks, 5s);
  ASSERT_THAT(report.findings, SizeIs(1));
  const Finding& finding = report.findings[0];
  EXPECT_EQ(finding.kind, Kind::notEntered);
  EXPECT_TRUE(finding.cause);
  ASSERT_THAT(finding.culprits, SizeIs(1));
  EXPECT_EQ(finding.culprits[0].jobRank, 3);
  EXPECT_THAT(finding.waiting, SizeIs(7));
  EXPECT_EQ(finding.longest, 12s + 300ms);
  EXPECT_THAT(finding.text, HasSubstr("rank 3 has not entered AllReduce #1041"));
  EXPECT_THAT(finding.text, HasSubstr("(dp), 7 others wait in it for 12.3 s"));
  EXPECT_THAT(finding.text, HasSubstr("outside of the library for 13.0 s, after AllReduce #1040"));
}

// In a Reduce only the root needs all: the others go on and are not missing.
TEST(HangAnalysis, WhoIsAheadIsNotMissing) {
  MadeUpJob job(3);
  job.inFlight(Operation::reduce, 0, 0, 5, 100s);
  job.finished(Operation::reduce, 1, 0, 5, 100s, 100s + 1ms);
  job.inFlight(Operation::reduce, 1, 0, 6, 101s);
  job.finished(Operation::reduce, 2, 0, 4, 99s, 100s);
  const HangReport report = analyseHang(job.ranks, 5s);
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
  const HangReport report = analyseHang(job.ranks, 5s);
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
    const HangReport report = analyseHang(job.ranks, 5s);
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
  const HangReport report = analyseHang(job.ranks, 5s);
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
  const HangReport report = analyseHang(job.ranks, 5s);
  ASSERT_THAT(report.findings, SizeIs(1));
  EXPECT_EQ(report.findings[0].kind, Kind::mismatch);
}

TEST(HangAnalysis, RanksWithoutALogHereAreUnknownAndNotBlamed) {
  MadeUpJob job(4);
  for (Rank rank = 0; rank < 2; ++rank) job.inFlight(Operation::allReduce, rank, -1, 0, 100s);
  job.ranks.resize(3);
  const HangReport report = analyseHang(job.ranks, 5s);
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
  const HangReport report = analyseHang(job.ranks, 5s);
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
  const HangReport report = analyseHang(two.ranks, 5s);
  ASSERT_THAT(report.findings, SizeIs(1));
  EXPECT_THAT(report.findings[0].text, HasSubstr("rank 1 of communicator"));
  EXPECT_TRUE(report.findings[0].cause);
}

}  // namespace
}  // namespace falcon::jobs
