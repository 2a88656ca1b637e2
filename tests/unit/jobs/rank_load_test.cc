#include "top/rank_load.h"

#include <gtest/gtest.h>

#include "unit/jobs/ranks.h"

namespace falcon::top {
namespace {

using tests::MadeUpJob;

// Ten times: rank 0 comes, rank 1 comes 40 ms later, both leave 20 ms after that; 100 ms in all.
TEST(RankLoad, TellsWaitingFromTransferAndFromBeingAway) {
  MadeUpJob job(2, 101s);
  for (std::uint64_t i = 0; i < 10; ++i) {
    const Nanoseconds start = 100s + i * 100ms;
    job.finished(Operation::allReduce, 0, -1, i, start, start + 60ms);
    job.finished(Operation::allReduce, 1, -1, i, start + 40ms, start + 60ms);
  }
  const auto loads = loadsOf(job.ranks, 5s);
  ASSERT_EQ(loads.size(), 2u);
  EXPECT_NEAR(loads[0].span, 1, 1e-9);
  EXPECT_NEAR(*loads[0].waiting, 0.4, 1e-9);
  EXPECT_NEAR(*loads[0].transfer, 0.2, 1e-9);
  EXPECT_NEAR(loads[0].inside, 0.6, 1e-9);
  EXPECT_NEAR(loads[0].callsPerSecond, 10, 1e-9);
  EXPECT_NEAR(*loads[0].lag, 0, 1e-9);
  EXPECT_NEAR(*loads[1].waiting, 0, 1e-9);
  EXPECT_NEAR(*loads[1].transfer, 0.2 / 0.96, 1e-9);
  EXPECT_NEAR(*loads[1].lag, 0.04, 1e-9);
}

TEST(RankLoad, AReceiverWaitsForItsSender) {
  MadeUpJob job(2, 101s);
  job.finished(Operation::receive, 0, 1, 0, 100s, 100s + 600ms);
  job.finished(Operation::send, 1, 0, 0, 100s + 500ms, 100s + 600ms);
  const auto loads = loadsOf(job.ranks, 5s);
  EXPECT_NEAR(*loads[0].waiting, 0.5, 1e-9);
  EXPECT_NEAR(*loads[0].transfer, 0.1, 1e-9);
  EXPECT_FALSE(loads[0].lag);
}

TEST(RankLoad, ACallInFlightIsTimeInsideOfTheLibrary) {
  MadeUpJob job(2, 101s);
  for (Rank rank = 0; rank < 2; ++rank) job.finished(Operation::allReduce, rank, -1, 0, 100s, 100s + 100ms);
  job.inFlight(Operation::allReduce, 0, -1, 1, 100s + 200ms);
  auto loads = loadsOf(job.ranks, 5s);
  EXPECT_NEAR(loads[0].inside, 0.9, 1e-9);
  EXPECT_FALSE(loads[0].waiting);
  EXPECT_NEAR(loads[1].inside, 0.1, 1e-9);
  // Long before the span that is looked at.
  job.ranks[0].now = 200s;
  loads = loadsOf(job.ranks, 5s);
  EXPECT_NEAR(loads[0].span, 5, 1e-9);
  EXPECT_NEAR(loads[0].inside, 1, 1e-9);
}

TEST(RankLoad, CallsOfAGroupCountOnce) {
  MadeUpJob job(3, 101s);
  for (const Rank peer : {1, 2}) {
    job.finished(Operation::send, 0, peer, 0, 100s, 100s + 500ms).grouped = true;
    job.finished(Operation::receive, peer, 0, 0, 100s + peer * 200ms, 100s + 500ms);
  }
  const auto loads = loadsOf(job.ranks, 5s);
  EXPECT_NEAR(loads[0].inside, 0.5, 1e-9);
  EXPECT_NEAR(*loads[0].waiting, 0.4, 1e-9);
}

TEST(RankLoad, WhatIsNotKnownIsNotSaid) {
  MadeUpJob job(3, 101s);
  EXPECT_EQ(loadsOf(job.ranks, 5s)[0].span, 0);
  // Rank 2 is on another host, and nobody knows when it came.
  job.ranks[2].log.identity.host = "other";
  for (Rank rank = 0; rank < 3; ++rank) job.finished(Operation::allReduce, rank, -1, 0, 100s, 100s + 500ms);
  const auto loads = loadsOf(job.ranks, 5s);
  EXPECT_NEAR(loads[0].inside, 0.5, 1e-9);
  EXPECT_FALSE(loads[0].waiting);
  EXPECT_FALSE(loads[0].transfer);
  EXPECT_FALSE(loads[0].lag);
  EXPECT_TRUE(loadsOf({}, 5s).empty());
}

}  // namespace
}  // namespace falcon::top
