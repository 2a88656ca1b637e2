#include "instrument/work_pace.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>

#include "instrument/change_point.h"

namespace falcon::instrument {
namespace {

double drawn(std::mt19937& random, double least, double most) {
  return std::uniform_real_distribution<>(least, most)(random);
}

/// Onsets in 600 iterations whose time is this of the work, with 1 % of noise; from iteration 400 on all take 1.2 times
/// as long if `slow`.
int onsetsOf(const std::function<double(double)>& timeOf, bool told, bool slow, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<> noise(0, 0.01);
  WorkPace pace;
  ChangePointDetector detector;
  int onsets = 0;
  for (int i = 0; i < 600; ++i) {
    // From the middle on, all sequences are twice as long.
    const double work = drawn(random, 700, 1300) * (i < 200 ? 1 : 2);
    const double time = timeOf(work) * std::exp(noise(random)) * (slow && i >= 400 ? 1.2 : 1);
    const auto judged = pace.add(time, told ? work : 0);
    if (!judged) continue;
    const auto change = detector.add(*judged);
    onsets += change && change->kind == ChangeKind::onset;
  }
  return onsets;
}

class TimeOfWork : public testing::TestWithParam<std::function<double(double)>> {};

TEST_P(TimeOfWork, IsJudgedByTheWork) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    EXPECT_EQ(onsetsOf(GetParam(), true, false, seed), 0) << "seed " << seed;
    EXPECT_EQ(onsetsOf(GetParam(), true, true, seed), 1) << "seed " << seed;
    EXPECT_GE(onsetsOf(GetParam(), false, false, seed), 1) << "otherwise this shows nothing, seed " << seed;
  }
}
INSTANTIATE_TEST_SUITE_P(Proportional, TimeOfWork, testing::Values([](double work) { return work; }));
INSTANTIATE_TEST_SUITE_P(WithAConstantPart, TimeOfWork, testing::Values([](double work) { return 300 + 0.7 * work; }));
INSTANTIATE_TEST_SUITE_P(Squared, TimeOfWork, testing::Values([](double work) { return 1e-3 * work * work; }));

TEST(WorkPace, OfAJobThatTellsNoWorkLeavesTimesAlone) {
  WorkPace pace;
  for (int i = 1; i < 50; ++i) EXPECT_EQ(pace.add(i, 0), i);
  EXPECT_EQ(pace.judged(7, 100), 7);
  EXPECT_EQ(pace.usual(), 0);
  EXPECT_EQ(pace.generation(), 0);
}

TEST(WorkPace, IsOfTheUsualWorkInTheUnitOfTheTimes) {
  WorkPace pace;
  for (int i = 0; i < 7; ++i) EXPECT_FALSE(pace.add(0.5, 1000));
  EXPECT_EQ(pace.add(0.5, 1000), 0.5);
  EXPECT_EQ(pace.usual(), 1000);
  EXPECT_EQ(pace.add(1, 2000), 0.5) << "proportional, as long as nothing else is known";
  EXPECT_FALSE(pace.add(0.5, 0)) << "not told this once";
  EXPECT_FALSE(pace.add(std::nan(""), 1000));
  EXPECT_EQ(pace.generation(), 0);
}

TEST(WorkPace, BeginsAnewWhereTheJobBeginsOrEndsToTellItsWork) {
  WorkPace pace;
  for (int i = 0; i < 20; ++i) pace.add(1, 0);
  int unjudged = 0;
  for (int i = 0; i < 40; ++i) unjudged += !pace.add(1, 50);
  EXPECT_EQ(unjudged, 7 + 7);
  EXPECT_EQ(pace.generation(), 1);
  EXPECT_EQ(pace.usual(), 50);
  for (int i = 0; i < 8; ++i) pace.add(1, 0);
  EXPECT_EQ(pace.generation(), 2);
  EXPECT_EQ(pace.add(3, 0), 3);
}

}  // namespace
}  // namespace falcon::instrument
