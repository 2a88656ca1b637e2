// Causes from figures: each kind from its own evidence only.
#include "validate/cause.h"

#include <gtest/gtest.h>

#include <cmath>

#include "validate/memory_test.h"

namespace falcon::validate {
namespace {

CauseEvidence healthy() {
  return {1, 1, 0.0, 0.02, 0, 0.98, 2, 0, 0.5};
}
CauseEvidence slowBecause(double CauseEvidence::*figure, double value) {
  CauseEvidence rank = healthy();
  rank.computeSlowness = 2;
  rank.ran = 0.5;
  rank.*figure = value;
  return rank;
}

TEST(Cause, EachKindFromItsOwnEvidence) {
  const auto causeOf = [](const CauseEvidence& rank) { return diagnose(rank, healthy()).cause; };
  EXPECT_EQ(causeOf(slowBecause(&CauseEvidence::throttled, 0.6)), Cause::quota);
  EXPECT_EQ(causeOf(slowBecause(&CauseEvidence::waited, 0.5)), Cause::contention);
  EXPECT_EQ(causeOf(slowBecause(&CauseEvidence::stolen, 0.4)), Cause::contention);
  EXPECT_EQ(causeOf(slowBecause(&CauseEvidence::thermalThrottles, 3)), Cause::thermal);
  EXPECT_EQ(causeOf(slowBecause(&CauseEvidence::power, 0.99)), Cause::powerCap);
  EXPECT_EQ(causeOf(slowBecause(&CauseEvidence::memorySlowness, 3)), Cause::memory);
  EXPECT_EQ(causeOf(slowBecause(&CauseEvidence::ran, 0.99)), Cause::hardware);
}

TEST(Cause, WithoutEvidenceNothingIsClaimed) {
  EXPECT_EQ(diagnose({}, {}).cause, Cause::unexplained);
  CauseEvidence rank;
  rank.computeSlowness = 5;
  EXPECT_EQ(diagnose(rank, {}).cause, Cause::unexplained);
  EXPECT_EQ(diagnose(slowBecause(&CauseEvidence::ran, 0.5), healthy()).cause, Cause::unexplained);
}

TEST(Cause, WhatThePeersSufferAlikeExplainsNothing) {
  CauseEvidence usual = healthy(), rank = healthy();
  rank.computeSlowness = 2;
  usual.throttled = 0.5, rank.throttled = 0.55;
  usual.waited = 0.6, rank.waited = 0.65;
  usual.stolen = 0.3, rank.stolen = 0.35;
  usual.power = 1, rank.power = 1;
  usual.thermalThrottles = 4, rank.thermalThrottles = 4;
  rank.ran = 0.4;
  EXPECT_EQ(diagnose(rank, usual).cause, Cause::unexplained);
}

TEST(Cause, AQuotaComesBeforeTheWaitingItCauses) {
  auto rank = slowBecause(&CauseEvidence::throttled, 0.6);
  rank.waited = 0.5;
  EXPECT_EQ(diagnose(rank, healthy()).cause, Cause::quota);
}

TEST(Cause, FewerCoresAreToldBesideContention) {
  auto rank = slowBecause(&CauseEvidence::waited, 0.5);
  rank.processors = 1;
  EXPECT_NE(diagnose(rank, healthy()).evidence.find("it may use 1 cores, its peers 2"), std::string::npos);
}

TEST(Cause, UsualIsTheMedianOfWhatIsKnown) {
  CauseEvidence one, two, three;
  one.waited = 0.1, two.waited = 0.3, three.waited = 0.9;
  two.power = 0.4;
  const auto usual = usualOf({one, two, three});
  EXPECT_DOUBLE_EQ(usual.waited, 0.3);
  EXPECT_DOUBLE_EQ(usual.power, 0.4);
  EXPECT_TRUE(std::isnan(usual.throttled));
}

TEST(MemoryTest, MeasuresForItsSpan) {
  const auto score = testMemory(SystemClock::instance(), 20ms, std::size_t{16} << 20);
  ASSERT_TRUE(score);
  EXPECT_GE(score->wall, 20ms);
  EXPECT_GT(score->bytesPerSecond, 1e6);
  EXPECT_FALSE(testMemory(SystemClock::instance(), 1ms, std::size_t{1} << 62));
}

}  // namespace
}  // namespace falcon::validate
