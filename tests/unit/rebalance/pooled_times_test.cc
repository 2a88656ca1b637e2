#include "rebalance/pooled_times.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "base/median.h"

namespace falcon::rebalance {
namespace {

using Measured = std::vector<std::vector<double>>;

/// Measurements of each of `times`, with chance in them.
Measured measure(std::mt19937& random, const std::vector<double>& times, int measurements, double scatter) {
  Measured measured;
  for (const double time : times) {
    std::vector<double>& of = measured.emplace_back();
    for (int i = 0; i < measurements; ++i) of.push_back(time * std::normal_distribution(1.0, scatter)(random));
  }
  return measured;
}

bool areAllOne(const std::vector<double>& times) {
  return std::ranges::all_of(times, [&](double each) { return each == times.front(); });
}

class PooledTimes : public testing::TestWithParam<int> {};  // of how many

TEST_P(PooledTimes, OfEqualsAreOneHoweverTheyScatter) {
  std::mt19937 random(1);
  constexpr int rounds = 200;
  for (const double scatter : {0.01, 0.05, 0.15})
    for (const int measurements : {2, 4, 16}) {
      int apart = 0;
      for (int round = 0; round < rounds; ++round) {
        const std::vector<double> times(static_cast<std::size_t>(GetParam()), 0.03);
        apart += !areAllOne(pooledTimes(measure(random, times, measurements, scatter)));
      }
      EXPECT_LE(apart, rounds / 25) << scatter << ", " << measurements;
    }
}

TEST_P(PooledTimes, OfTwoKindsAreTwoWhereTheyAreMeasuredWell) {
  struct Case {
    double slower;
    int measurements;
    double scatter;
  };
  std::mt19937 random(2);
  for (const auto& [slower, measurements, scatter] : {Case{1.11, 4, 0.01}, Case{1.11, 32, 0.04}, Case{1.05, 64, 0.02}})
    for (int round = 0; round < 50; ++round) {
      std::vector<double> times(static_cast<std::size_t>(GetParam()), 1);
      for (std::size_t i = 0; i < times.size(); i += 2) times[i] = slower;
      const auto pooled = pooledTimes(measure(random, times, measurements, scatter));
      for (std::size_t i = 0; i < times.size(); ++i) EXPECT_NEAR(pooled[i], times[i], (slower - 1) / 3) << slower;
    }
}

TEST_P(PooledTimes, AreNoFurtherFromTheOwnOnesThanTheScatter) {
  // Neighbours that differ by less than the scatter are no chain that makes one of the fastest and the slowest.
  constexpr double scatter = 0.002;
  std::mt19937 random(3);
  std::vector<double> times;
  for (int i = 0; i < GetParam(); ++i) times.push_back(0.8 + 0.4 * i / GetParam());
  const Measured measured = measure(random, times, 4, scatter);
  const auto pooled = pooledTimes(measured);
  for (std::size_t i = 0; i < times.size(); ++i) EXPECT_NEAR(pooled[i], mean(measured[i]), 8 * scatter);
}

INSTANTIATE_TEST_SUITE_P(Sizes, PooledTimes, testing::Values(2, 3, 4, 8, 32, 200));

TEST(PooledTimesOf, NothingAreNone) {
  EXPECT_TRUE(pooledTimes({}).empty());
}

TEST(PooledTimesOf, OneAreItsMean) {
  EXPECT_EQ(pooledTimes(Measured{{1, 3}}), (std::vector<double>{2}));
}

TEST(PooledTimesOf, SingleMeasurementsAreOne) {
  EXPECT_EQ(pooledTimes(Measured{{1}, {2}, {3}}), (std::vector<double>{2, 2, 2}));
}

TEST(PooledTimesOf, SomeMeasuredOftenerFollowThese) {
  const auto pooled = pooledTimes(Measured{{0.9, 1.1, 0.9, 1.1}, {1.05}});
  EXPECT_TRUE(areAllOne(pooled));
  EXPECT_NEAR(pooled[0], 1.01, 1e-12);
}

TEST(PooledTimesOf, WhatDoesNotScatterAreItsOwn) {
  EXPECT_EQ(pooledTimes(Measured{{2, 2}, {1, 1}, {1.01, 1.01}}), (std::vector<double>{2, 1, 1.01}));
}

}  // namespace
}  // namespace falcon::rebalance
