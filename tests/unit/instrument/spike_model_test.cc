#include "instrument/spike_model.h"

#include <gtest/gtest.h>

namespace falcon::instrument {
namespace {

constexpr ChangeLimits tenPercent{0.0953};
constexpr double deviation = 0.01, spike = 0.6;

/// After so many samples, each `every`-th of which begins `length` spikes.
SpikeModel modelOf(int samples, int every, int length) {
  SpikeModel model(tenPercent);
  for (int i = 0; i < samples; ++i) model.add(i % every >= every - length ? spike : 0.0, deviation, 100 + i);
  return model;
}

TEST(SpikeModel, WantsMoreInARowTheMoreSpikesThereAre) {
  EXPECT_EQ(modelOf(1000, 1001, 1).lastingSamples(spike, 1100), shortestChange);
  const int rare = modelOf(1000, 100, 1).lastingSamples(spike, 1100);
  const int frequent = modelOf(1000, 10, 1).lastingSamples(spike, 1100);
  EXPECT_GE(rare, 3);
  EXPECT_GT(frequent, rare);
  EXPECT_LE(frequent, movedSamples);
  EXPECT_NEAR(modelOf(2000, 10, 1).rate(), 0.1, 0.02);
}

TEST(SpikeModel, RemembersBurstsForTwoThousandSamples) {
  SpikeModel model = modelOf(100, 50, 3);
  EXPECT_EQ(model.lastingSamples(spike, 200), 5);
  EXPECT_DOUBLE_EQ(model.burstHeight(200), spike);
  EXPECT_TRUE(model.inBursts());
  EXPECT_EQ(model.burstHeight(2300), 0);
}

TEST(SpikeModel, CountsStreaksToEitherSide) {
  SpikeModel model(tenPercent);
  int sample = 0;
  for (const double distance : {0.2, 0.2, -0.2}) model.add(distance, deviation, ++sample);
  EXPECT_EQ(model.streak(), -1);
  model.add(-0.2, deviation, ++sample);
  EXPECT_EQ(model.streak(), -2);
  model.add(0.01, deviation, ++sample);
  EXPECT_EQ(model.streak(), 0);
}

TEST(HealthyVisits, AreStreaksAndAShare) {
  HealthyVisits visits;
  for (int i = 0; i < 40; ++i) visits.add(i % 4 == 0);
  EXPECT_EQ(visits.streak(), 0);
  EXPECT_NEAR(visits.rate(), 0.2, 0.05);
  visits.add(true);
  visits.add(true);
  EXPECT_EQ(visits.streak(), 2);
}

}  // namespace
}  // namespace falcon::instrument
