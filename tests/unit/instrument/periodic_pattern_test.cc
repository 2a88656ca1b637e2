#include "instrument/periodic_pattern.h"

#include <gtest/gtest.h>

#include <random>

namespace falcon::instrument {
namespace {

/// Values that are 1 higher on every `period`-th turn, with a little noise.
std::vector<double> turns(std::size_t period, std::size_t size, std::int64_t first = 0, double noise = 0.01) {
  std::mt19937 random(7);
  std::normal_distribution<> normal(0, noise);
  std::vector<double> values(size);
  for (std::size_t i = 0; i < size; ++i)
    values[i] = (static_cast<std::size_t>(first) + i) % period == 0 ? 1 + normal(random) : normal(random);
  return values;
}

double scatter(const std::vector<double>& values, std::int64_t first, const PeriodicPattern& pattern) {
  double most = -1e9, least = 1e9;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double rest = values[i] - pattern.at(first + static_cast<std::int64_t>(i));
    most = std::max(most, rest);
    least = std::min(least, rest);
  }
  return most - least;
}

TEST(PeriodicPattern, TakesAwayWhatTakesTurns) {
  for (std::size_t period = 2; period <= 12; ++period)
    for (const std::int64_t first : {0, 5}) {
      const auto values = turns(period, 128, first);
      const auto pattern = findPattern(values, first, {});
      ASSERT_EQ(pattern.offsets.size(), period);
      EXPECT_LT(scatter(values, first, pattern), 0.2) << period;
    }
}

TEST(PeriodicPattern, IsNoneInNoiseNorInStepsNorInTooFewRepeats) {
  std::mt19937 random(3);
  std::normal_distribution<> normal;
  std::vector<double> noise(128), step(128);
  for (std::size_t i = 0; i < 128; ++i) {
    noise[i] = normal(random);
    step[i] = (i < 64 ? 0 : 5) + 0.1 * normal(random);
  }
  EXPECT_TRUE(findPattern(noise, 0, {}).offsets.empty());
  EXPECT_TRUE(findPattern(step, 0, {}).offsets.empty());
  EXPECT_TRUE(findPattern(turns(12, 60), 0, {}).offsets.empty());
  EXPECT_TRUE(findPattern({}, 0, {}).offsets.empty());
}

TEST(PeriodicPattern, IsNotBentByASpikeOrAStep) {
  auto values = turns(2, 128);
  values[40] += 10;
  for (std::size_t i = 64; i < values.size(); ++i) values[i] += 3;
  const auto pattern = findPattern(values, 0, {});
  ASSERT_EQ(pattern.offsets.size(), 2U);
  EXPECT_NEAR(pattern.offsets[0] - pattern.offsets[1], 1, 0.1);
}

TEST(PeriodicPattern, OfNoOffsetsAddsNothing) {
  EXPECT_EQ(PeriodicPattern{}.at(17), 0);
}

}  // namespace
}  // namespace falcon::instrument
