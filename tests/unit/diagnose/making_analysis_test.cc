#include "diagnose/making_analysis.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/jobs/ranks.h"

namespace falcon::diagnose {
namespace {

using instrument::MakingKind;
using instrument::MakingView;
using instrument::ProcessState;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;
using tests::MadeUpJob;
using Kind = Finding::Kind;

constexpr std::uint64_t key = 0x77;

/// Ranks that have made no communicator yet; `silent` ones have no log either.
MadeUpJob startingJob(int size, std::vector<Rank> silent = {}) {
  MadeUpJob job(size);
  for (auto& rank : job.ranks) rank.log.communicators.clear();
  for (auto rank = silent.rbegin(); rank != silent.rend(); ++rank) job.ranks.erase(job.ranks.begin() + *rank);
  return job;
}

MakingView making(Rank rank, int size, Nanoseconds enter, MakingKind kind = MakingKind::init) {
  MakingView view;
  view.kind = kind;
  view.key = kind == MakingKind::init ? key : tests::world;
  view.rank = rank;
  view.size = size;
  view.enter = enter;
  view.name = "dp";
  return view;
}

std::vector<Rank> ranksOf(const std::vector<MemberName>& members) {
  std::vector<Rank> ranks;
  for (const MemberName& member : members) ranks.push_back(member.jobRank);
  return ranks;
}

TEST(MakingAnalysis, NamesWhoHasNotComeAndHasNoLog) {
  MadeUpJob job = startingJob(4, {2});
  for (auto& rank : job.ranks) rank.log.makings = {making(rank.log.identity.jobRank, 4, 98s)};
  const HangFindings report = analyseHang(job.ranks, 5s);
  ASSERT_THAT(report.findings, SizeIs(1));
  const Finding& finding = report.findings[0];
  EXPECT_EQ(finding.kind, Kind::notEntered);
  EXPECT_TRUE(finding.cause);
  EXPECT_THAT(ranksOf(finding.culprits), ElementsAre(2));
  EXPECT_THAT(ranksOf(finding.waiting), ElementsAre(0, 1, 3));
  EXPECT_EQ(finding.longest, 12s);
  EXPECT_THAT(finding.text, HasSubstr("ranks 0, 1, 3 wait in ncclCommInitRank of 4 ranks (dp) for 12.0 s; "
                                      "rank 2 has not entered it; rank 2: no log here"));
  EXPECT_THAT(report.ranks[0].text, HasSubstr("in ncclCommInitRank of 4 ranks (dp) for 12.0 s"));
  EXPECT_THAT(analyseHang(job.ranks, 13s).findings, IsEmpty());
}

TEST(MakingAnalysis, WhomTheRendezvousHasSeenIsNotMissing) {
  MadeUpJob job = startingJob(4, {2, 3});
  for (auto& rank : job.ranks) rank.log.makings = {making(rank.log.identity.jobRank, 4, 98s)};
  job.ranks[0].log.makings[0].arrived = {0, 1, 3};
  const HangFindings report = analyseHang(job.ranks, 5s);
  ASSERT_THAT(report.findings, SizeIs(1));
  EXPECT_THAT(ranksOf(report.findings[0].culprits), ElementsAre(2)) << "rank 3 is on another host";
}

TEST(MakingAnalysis, SaysWhatTheMissingOneDoesInstead) {
  MadeUpJob job(3);  // all have a communicator already
  job.inFlight(Operation::allReduce, 2, -1, 4, 97s);
  for (const Rank rank : {0, 1}) job.ranks[rank].log.makings = {making(rank, 3, 98s)};
  const HangFindings report = analyseHang(job.ranks, 5s);
  ASSERT_THAT(report.findings, SizeIs(2)) << "they wait for each other";
  EXPECT_TRUE(report.circle);
  for (const Finding& finding : report.findings) EXPECT_FALSE(finding.cause);
  EXPECT_THAT(report.findings[0].text + report.findings[1].text,
              HasSubstr("rank 2: it is in AllReduce #4 of 100 x float"));
  EXPECT_THAT(report.findings[0].text + report.findings[1].text,
              HasSubstr("it is in ncclCommInitRank of 3 ranks (dp) for 12.0 s"));
}

TEST(MakingAnalysis, NamesWhoIsStoppedInTheMiddle) {
  MadeUpJob job = startingJob(3);
  for (auto& rank : job.ranks) rank.log.makings = {making(rank.log.identity.jobRank, 3, 98s)};
  const HangFindings waiting = analyseHang(job.ranks, 5s);
  ASSERT_THAT(waiting.findings, SizeIs(1));
  EXPECT_EQ(waiting.findings[0].kind, Kind::stuck);
  EXPECT_FALSE(waiting.findings[0].cause);
  job.ranks[1].process = ProcessState::stopped;
  for (const bool met : {false, true}) {
    for (auto& rank : job.ranks) rank.log.makings[0].met = met;
    const HangFindings report = analyseHang(job.ranks, 5s);
    ASSERT_THAT(report.findings, SizeIs(1));
    EXPECT_EQ(report.findings[0].kind, Kind::stuck);
    EXPECT_TRUE(report.findings[0].cause);
    EXPECT_THAT(ranksOf(report.findings[0].culprits), ElementsAre(1));
    EXPECT_THAT(report.findings[0].text, HasSubstr("all have entered it; rank 1: its process (1001) is stopped"));
  }
  // Once all have met, who has no place there has gone through.
  job.ranks[0].log.makings.clear();
  EXPECT_THAT(ranksOf(analyseHang(job.ranks, 5s).findings.at(0).culprits), ElementsAre(1));
}

TEST(MakingAnalysis, AfterTheEndBlamesOnlyWhoHadNotCome) {
  MadeUpJob job(3);
  for (auto& rank : job.ranks) rank.process = ProcessState::dead;
  for (const Rank rank : {0, 1}) job.ranks[rank].log.makings = {making(rank, 3, 98s)};
  const HangFindings report = analyseHang(job.ranks, 5s);
  ASSERT_THAT(report.findings, SizeIs(1));
  EXPECT_THAT(ranksOf(report.findings[0].culprits), ElementsAre(2));
}

TEST(MakingAnalysis, NamesNoRankOfTheJobWhereItCannotKnow) {
  MadeUpJob job = startingJob(8, {1, 3, 5, 6, 7});  // a communicator of the even ones
  for (auto& rank : job.ranks) rank.log.makings = {making(rank.log.identity.jobRank / 2, 4, 98s)};
  const HangFindings report = analyseHang(job.ranks, 5s);
  ASSERT_THAT(report.findings, SizeIs(1));
  EXPECT_THAT(ranksOf(report.findings[0].culprits), ElementsAre(-1));
  EXPECT_THAT(report.findings[0].text, HasSubstr("rank 3 of the communicator has not entered it"));
  EXPECT_THAT(report.findings[0].text, HasSubstr("ranks 0, 2, 4 wait in"));
}

TEST(MakingAnalysis, OfASplitNamesTheMembersThatDoNotCall) {
  MadeUpJob job(3);
  for (const Rank rank : {0, 2}) job.ranks[rank].log.makings = {making(rank, 3, 98s, MakingKind::split)};
  HangFindings report = analyseHang(job.ranks, 5s);
  ASSERT_THAT(report.findings, SizeIs(1));
  EXPECT_EQ(report.findings[0].kind, Kind::notEntered);
  EXPECT_THAT(ranksOf(report.findings[0].culprits), ElementsAre(1));
  EXPECT_THAT(report.findings[0].text, HasSubstr("in ncclCommSplit (dp) of \"dp\" for 12.0 s"));
  job.ranks[2].process = ProcessState::stopped;  // rank 1 may have been through before
  report = analyseHang(job.ranks, 5s);
  ASSERT_THAT(report.findings, SizeIs(1));
  EXPECT_THAT(ranksOf(report.findings[0].culprits), ElementsAre(2));
}

TEST(MakingAnalysis, OfAShrinkAccusesNobodyWhoMayBeExcluded) {
  MadeUpJob job(3);
  for (const Rank rank : {0, 2}) job.ranks[rank].log.makings = {making(rank, 3, 98s, MakingKind::shrink)};
  const HangFindings report = analyseHang(job.ranks, 5s);
  ASSERT_THAT(report.findings, SizeIs(1));
  EXPECT_EQ(report.findings[0].kind, Kind::stuck);
  EXPECT_THAT(report.findings[0].culprits, IsEmpty());
}

TEST(MakingAnalysis, SeesTheRanksOfOneProcessApart) {
  MadeUpJob job = startingJob(1);
  for (const Rank rank : {0, 1, 3}) job.ranks[0].log.makings.push_back(making(rank, 4, 98s));
  const HangFindings report = analyseHang(job.ranks, 5s);
  ASSERT_THAT(report.findings, SizeIs(1));
  EXPECT_THAT(report.findings[0].waiting, SizeIs(3));
  EXPECT_THAT(report.findings[0].text, HasSubstr("rank 2 of the communicator has not entered it"));
}

}  // namespace
}  // namespace falcon::diagnose
