#include "instrument/noise_estimate.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace falcon::instrument {
namespace {

constexpr int many = 4096;

/// `many` values of deviation 1 of which neighbours correlate by `shared`.
NoiseEstimate estimateOf(double shared, double spikes = 0) {
  std::mt19937 random(1);
  std::normal_distribution<> normal;
  std::uniform_real_distribution<> uniform;
  NoiseEstimate noise(many);
  double value = 0;
  for (int i = 0; i < many; ++i) {
    value = shared * value + std::sqrt(1 - shared * shared) * normal(random);
    noise.add(uniform(random) < spikes ? 50 : value);
  }
  return noise;
}

TEST(NoiseEstimate, OfNormalValuesIsTheirDeviation) {
  EXPECT_NEAR(estimateOf(0).deviation(), 1, 0.05);
  EXPECT_NEAR(estimateOf(0).memory(), 1, 0.1);
}

TEST(NoiseEstimate, IsNotWidenedBySpikes) {
  EXPECT_NEAR(estimateOf(0, 0.05).deviation(), 1, 0.25);
  EXPECT_NEAR(estimateOf(0, 0.15).deviation(), 1, 0.5) << "evaluations every seven iterations";
}

TEST(NoiseEstimate, OfNothingIsNothing) {
  NoiseEstimate noise(16);
  noise.adjust([](std::size_t, double residual) { return residual; });
  EXPECT_EQ(noise.deviation(), 0);
  EXPECT_EQ(noise.memory(), 1);
}

TEST(NoiseEstimate, SeesWhatNeighboursShare) {
  const auto expected = [](double shared) { return std::sqrt((1 + shared) / (1 - shared)); };
  EXPECT_NEAR(estimateOf(0.2).memory(), expected(0.2), 0.15);
  EXPECT_NEAR(estimateOf(0.4).memory(), expected(0.4), 0.15);
  EXPECT_EQ(estimateOf(-0.4).memory(), 1);  // alternating values average out sooner
}

TEST(NoiseEstimate, TakesWhatFewNeighboursShareForTrue) {
  NoiseEstimate noise(64);  // correlation 0.125: of 64 values that may be chance
  for (int i = 0; i < 64; ++i) noise.add(std::sin(1.45 * i));
  EXPECT_GT(noise.memory(), 1.05);
  EXPECT_LT(noise.memory(), 1.3);
}

TEST(NoiseEstimate, CountsTwoModesInFull) {
  NoiseEstimate noise(128);
  for (int i = 0; i < 128; ++i) noise.add(i % 2 == 0 ? 0.2 : -0.2);
  EXPECT_GE(noise.deviation(), 0.2);
}

TEST(NoiseEstimate, FollowsTheNewestValuesAndIsClearedToNothing) {
  NoiseEstimate noise(64);
  for (int i = 0; i < 64; ++i) noise.add(i % 2 == 0 ? 1 : -1);
  const double before = noise.deviation();
  for (int i = 0; i < 64; ++i) noise.add(i % 2 == 0 ? 0.1 : -0.1);
  EXPECT_NEAR(noise.deviation(), before / 10, before / 100);
  EXPECT_EQ(noise.count(), 64U);
  noise.clear();
  EXPECT_EQ(noise.count(), 0U);
  EXPECT_EQ(noise.deviation(), 0);
}

TEST(NoiseEstimate, AdjustsEveryValueByItsAge) {
  for (const int added : {10, 64, 100}) {  // not full, full, once around
    NoiseEstimate noise(64);
    for (int i = 0; i < added; ++i) noise.add(i);
    noise.adjust([&](std::size_t age, double value) {
      EXPECT_EQ(value, added - 1 - static_cast<double>(age));
      return 0.0;
    });
    EXPECT_EQ(noise.deviation(), 0);
  }
}

}  // namespace
}  // namespace falcon::instrument
