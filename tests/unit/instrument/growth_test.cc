#include "instrument/growth.h"

#include <gtest/gtest.h>

#include <functional>
#include <random>

namespace falcon::instrument {
namespace {

/// Of 200 draws of 64 values with a deviation of 0.01: how many grow.
int growing(const std::function<double(int)>& level, double spikes = 0) {
  int count = 0;
  for (unsigned seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    std::normal_distribution<> noise(0, 0.01);
    std::vector<double> values;
    for (int i = 0; i < 64; ++i)
      values.push_back(level(i) + noise(random) + (std::uniform_real_distribution<>()(random) < spikes ? 0.7 : 0));
    count += growsSteadily(values, 0.05);
  }
  return count;
}

TEST(GrowsSteadily, WhatRisesAlongALine) {
  const auto line = [](int i) { return 5 + 0.0015 * i; };
  EXPECT_GE(growing(line), 190);
  EXPECT_GE(growing(line, 0.03), 180) << "with spikes";
}

TEST(GrowsSteadily, NoLevelNoStepAndNothingThatFalls) {
  EXPECT_LE(growing([](int) { return 5.0; }), 2);
  for (const int at : {8, 20, 32, 50})
    EXPECT_LE(growing([at](int i) { return i < at ? 5 : 5.15; }), 2) << "a step at " << at;
  EXPECT_EQ(growing([](int i) { return 5 - 0.0015 * i; }), 0);
}

TEST(GrowsSteadily, IsNotKnownOfFewValues) {
  std::vector<double> values;
  for (int i = 0; i < 23; ++i) values.push_back(0.01 * i);
  EXPECT_FALSE(growsSteadily(values, 0.05));
  values.push_back(0.23);
  EXPECT_TRUE(growsSteadily(values, 0.05));
}

}  // namespace
}  // namespace falcon::instrument
