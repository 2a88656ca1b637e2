// The score is a pure function of readings.
#include "core/congestion.h"

#include <gtest/gtest.h>

namespace falcon::net {
namespace {

constexpr std::uint64_t millisecond = 1'000'000;
constexpr double nobody = 0;

/// A sending connection that is read every 100 ms.
class Readings : public testing::Test {
 protected:
  Readings() {
    now_.valid = FALCON_NET_RTT | FALCON_NET_RETRANSMITS | FALCON_NET_LIMITS | FALCON_NET_ECN;
    now_.rttLeastNanoseconds = millisecond / 20;
    judge_.judge(now_, {nobody});
  }

  /// 100 ms pass in which `segments` were sent; the network was waited for in `waited` of the time.
  void pass(double waited, std::uint64_t segments = 1000, std::uint64_t again = 0, std::uint64_t marked = 0) {
    now_.taken += 100 * static_cast<std::int64_t>(millisecond);
    now_.busyNanoseconds += 100 * millisecond;
    now_.receiverLimitedNanoseconds += static_cast<std::uint64_t>((1 - waited) * 100 * millisecond);
    now_.segments += segments;
    now_.delivered += segments;
    now_.retransmits += again;
    now_.ecnMarked += marked;
  }
  Congestion judged(double others = nobody, std::size_t ours = 1) { return judge_.judge(now_, {others, ours}); }
  void queueFor(std::uint64_t milliseconds) {
    now_.rttNanoseconds = now_.rttLeastNanoseconds + milliseconds * millisecond;
  }

  falconNetConnection_v1 now_{};
  CongestionJudge judge_;
};

TEST_F(Readings, SayNothingWhereNothingWasSent) {
  now_.taken += 100 * static_cast<std::int64_t>(millisecond);
  EXPECT_EQ(judged().condition, falconNetUnknown);
}

TEST_F(Readings, OfAKernelThatDoesNotCountTimesSayNothing) {
  now_.valid &= ~FALCON_NET_LIMITS;
  pass(1);
  EXPECT_EQ(judged().condition, falconNetUnknown);
}

TEST_F(Readings, OfAnIdleNetworkAreHealthy) {
  queueFor(0);
  pass(1);
  const Congestion found = judged();
  EXPECT_EQ(found.condition, falconNetHealthy);
  EXPECT_LT(found.score, 0.01);
}

TEST_F(Readings, OfAQueueThatIsOnlyOursAreSlow) {
  queueFor(40);
  pass(1);
  const Congestion found = judged();
  EXPECT_EQ(found.condition, falconNetSlow);
  EXPECT_NEAR(found.score, 0.45 * 0.8, 1e-6);
}

TEST_F(Readings, OfAReceiverThatIsWaitedForAreHealthyHoweverLongTheQueue) {
  queueFor(40);
  pass(0.1);
  EXPECT_EQ(judged().condition, falconNetHealthy);
}

TEST_F(Readings, OfALinkThatOthersFillAreCongested) {
  queueFor(40);
  pass(1);
  EXPECT_EQ(judged(0.5).condition, falconNetCongested);
}

// The queues were full when the connection was made: no round trip was ever short.
TEST_F(Readings, OfALinkThatOthersHadFilledBeforeAreCongested) {
  now_.rttLeastNanoseconds = 11 * millisecond;
  queueFor(2);
  pass(1);
  judged(0.9);
  pass(1);
  EXPECT_EQ(judged(0.9).condition, falconNetCongested);
}

TEST_F(Readings, OfALinkThatOthersUseWithoutHarmAreHealthy) {
  queueFor(0);
  pass(1);
  EXPECT_EQ(judged(0.5).condition, falconNetHealthy);
}

TEST_F(Readings, WithMarksAreCongested) {
  pass(1, 1000, 0, 100);
  EXPECT_EQ(judged().condition, falconNetCongested);
}

TEST_F(Readings, WithTheUsualLossesAreHealthy) {
  for (int i = 0; i < 30; ++i) {
    pass(1, 1000, 17);  // BBR on a healthy link
    EXPECT_EQ(judged().condition, falconNetHealthy) << "reading " << i;
  }
}

TEST_F(Readings, WithMoreLossesThanUsualAreCongested) {
  for (int i = 0; i < 20; ++i) pass(1, 1000, 5), judged();
  int until = 0;
  do {
    pass(1, 1000, 90);
    ASSERT_LT(++until, 10);
  } while (judged().condition != falconNetCongested);
  EXPECT_GT(until, 1) << "a burst of losses is none";
}

// TCP waits for longer and longer before it sends again what it lost.
TEST_F(Readings, OfAConnectionThatLostNearlyAllItSentAreCongestedWhileItWaits) {
  for (int i = 0; i < 20; ++i) pass(1, 100'000), judged();
  for (int i = 0; i < 40; ++i) {
    pass(1, i % 7 == 0 ? 20 : 0, i % 7 == 0 ? 10 : 0);
    const Congestion found = judged();
    if (i >= 10) {
      EXPECT_EQ(found.condition, falconNetCongested) << i;
    }
  }
}

TEST_F(Readings, OfARateThatFellFarBelowTheBestAreSlowOnceItStaysSo) {
  pass(1);
  judged();
  for (int i = 0; i < 4; ++i) {
    pass(1, 100);
    EXPECT_EQ(judged().condition, falconNetHealthy) << i;
  }
  pass(1, 100);
  const Congestion found = judged();
  EXPECT_EQ(found.condition, falconNetSlow);
  EXPECT_NEAR(found.parts.slowness, 0.8, 0.02);
}

TEST_F(Readings, OfAnInterfaceThatOurOwnConnectionsShareAreHealthy) {
  pass(1);
  judged();
  for (int i = 0; i < 10; ++i) {
    pass(1, 250);
    EXPECT_EQ(judged(nobody, 4).condition, falconNetHealthy) << i;
  }
  for (int i = 0; i < 10; ++i) pass(1, 25), judged(nobody, 4);
  pass(1, 25);
  EXPECT_EQ(judged(nobody, 4).condition, falconNetSlow) << "a tenth of its part";
  for (int i = 0; i < 10; ++i) pass(1, 25), judged(nobody, 0);
  pass(1, 25);
  EXPECT_EQ(judged(nobody, 0).condition, falconNetHealthy) << "who shares it is not known";
}

// Small messages make many segments.
TEST_F(Readings, OfAConnectionWhoseSegmentsWereSmallAreHealthy) {
  now_.valid |= FALCON_NET_WIRE_BYTES;
  const auto send = [&](std::uint64_t segments, std::uint64_t bytesOfEach) {
    pass(1, segments);
    now_.wireBytes += segments * bytesOfEach;
    return judged().condition;
  };
  judged();
  send(20'000, 64);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(send(1000, 1448), falconNetHealthy) << i;
  for (int i = 0; i < 10; ++i) send(1000, 64);
  EXPECT_EQ(send(1000, 64), falconNetSlow);
}

TEST_F(Readings, OfALowRateThatTheNetworkDoesNotSetAreHealthy) {
  pass(1);
  judged();
  for (int i = 0; i < 10; ++i) {
    pass(0.8, 100);
    EXPECT_EQ(judged().condition, falconNetHealthy) << i;
  }
}

TEST_F(Readings, StayInTheirBounds) {
  queueFor(100'000);
  for (int i = 0; i < 20; ++i) {
    pass(1, 1000, 1000, 2000);
    const double score = judged(5).score;
    EXPECT_GE(score, 0);
    EXPECT_LE(score, 1);
  }
}

}  // namespace
}  // namespace falcon::net
