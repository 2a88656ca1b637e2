#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "harness/thoroughness.h"
#include "instrument/change_point.h"
#include "unit/instrument/recorded_run.h"

namespace falcon::instrument {
namespace {

using enum ChangeKind;

struct Told {
  ChangeKind kind;
  int iteration;
  double before, after, confidence;
};

struct Stretch {
  double milliseconds;
  int iterations;
};

/// What the detector says of these stretches, one after the other, with that much noise.
std::vector<Told> toldOf(const std::vector<Stretch>& stretches, double noise = 0.005, double threshold = 0.1,
                         unsigned seed = 1) {
  std::mt19937 random(seed);
  std::normal_distribution<> normal(0, noise);
  ChangePointDetector detector({.threshold = threshold});
  std::vector<Told> told;
  int iteration = 0;
  for (const Stretch& stretch : stretches)
    for (int i = 0; i < stretch.iterations; ++i, ++iteration)
      if (const auto change = detector.add(stretch.milliseconds * std::exp(normal(random))))
        told.push_back({change->kind, iteration, change->before, change->after, change->confidence});
  return told;
}

// A slow GPU cost BLOOM's team days at +5.6 %.
TEST(MinorSlowness, IsToldOnceAfterTwoHundredIterationsAndThatItIsOver) {
  for (const double noise : {0.003, 0.02})
    for (unsigned seed = 0; seed < 20; ++seed) {
      const auto told = toldOf({{100, 150}, {105.6, 700}, {100, 200}}, noise, 0.1, seed);
      ASSERT_EQ(told.size(), 2u) << "noise " << noise << ", seed " << seed;
      EXPECT_EQ(told[0].kind, minor);
      EXPECT_GE(told[0].iteration, 150 + 180);
      EXPECT_LE(told[0].iteration, 150 + (noise < 0.01 ? 210 : 500));
      EXPECT_NEAR(told[0].before, 100, 1);
      EXPECT_NEAR(told[0].after, 105.6, 1);
      EXPECT_GT(told[0].confidence, 0.99);
      EXPECT_EQ(told[1].kind, minorOver);
      EXPECT_GE(told[1].iteration, 850);
      EXPECT_LE(told[1].iteration, 850 + 60);
      EXPECT_NEAR(told[1].after, 100, 2);
    }
}

TEST(MinorSlowness, IsNotWhatIsLessOrShorterOrMore) {
  EXPECT_TRUE(toldOf({{100, 150}, {103.5, 1000}}).empty());
  EXPECT_TRUE(toldOf({{100, 150}, {106, 150}, {100, 300}}).empty());
  EXPECT_TRUE(toldOf({{100, 150}, {106, 150}, {100, 60}, {106, 150}, {100, 300}}).empty()) << "it did not stay";
  const auto more = toldOf({{100, 150}, {113, 1000}});
  ASSERT_EQ(more.size(), 1u);
  EXPECT_EQ(more[0].kind, onset);
}

TEST(MinorSlowness, IsNotWhatScatters) {
  for (unsigned seed = 0; seed < static_cast<unsigned>(test::samples(20)); ++seed)
    for (const double noise : {0.05, 0.10, 0.20})
      EXPECT_TRUE(toldOf({{100, 3000}}, noise, 0.1, seed).empty()) << "noise " << noise << ", seed " << seed;
}

TEST(MinorSlowness, AnOnsetTakesItsPlaceAndItMayComeAgain) {
  const auto told = toldOf({{100, 150}, {106, 300}, {150, 100}, {106, 400}, {100, 100}});
  std::vector<ChangeKind> kinds;
  for (const Told& each : told) kinds.push_back(each.kind);
  EXPECT_EQ(kinds, (std::vector{minor, onset, relief, minor, minorOver}));
}

TEST(MinorSlowness, OfAJobThatBecameFasterIsMeasuredByTheNewPace) {
  EXPECT_TRUE(toldOf({{100, 400}, {80, 600}}).empty()) << "the old pace is not slow";
  const auto told = toldOf({{100, 400}, {80, 300}, {84.8, 400}});
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].kind, minor);
  EXPECT_NEAR(told[0].before, 80, 1);
}

TEST(MinorSlowness, IsForgottenWhereTheWorkIsChangedOnPurpose) {
  ChangePointDetector detector;
  for (int i = 0; i < 500; ++i) detector.add(i < 150 ? 100 : 106);
  EXPECT_TRUE(detector.minor());
  detector.rebase();
  EXPECT_FALSE(detector.minor());
  for (int i = 0; i < 500; ++i) EXPECT_FALSE(detector.add(106).has_value()) << i;
}

TEST(MinorSlowness, IsNothingInTheRecordedRun) {
  ChangePointDetector detector;
  for (const double milliseconds : recordedMilliseconds)
    if (const auto change = detector.add(milliseconds)) {
      EXPECT_NE(change->kind, minor);
    }
}

// A job may be told what a change is; what is minor is half of that.
TEST(Threshold, SaysWhatCounts) {
  const auto kindsOf = [](double slower, double threshold) {
    std::vector<ChangeKind> kinds;
    for (const Told& each : toldOf({{100, 150}, {100 * slower, 400}, {100, 200}}, 0.003, threshold))
      kinds.push_back(each.kind);
    return kinds;
  };
  const std::vector<ChangeKind> nothing, change{onset, relief}, little{minor, minorOver};
  EXPECT_EQ(kindsOf(1.06, 0.1), little);
  EXPECT_EQ(kindsOf(1.06, 0.05), change);
  EXPECT_EQ(kindsOf(1.02, 0.1), nothing);
  EXPECT_EQ(kindsOf(1.03, 0.05), little);
  EXPECT_EQ(kindsOf(1.03, 0.02), change);
  EXPECT_EQ(kindsOf(1.2, 0.3), little);
  EXPECT_EQ(kindsOf(1.12, 0.3), nothing);
  EXPECT_EQ(kindsOf(1.6, 0.3), change);
  EXPECT_EQ(kindsOf(1.6, 1), little);
  EXPECT_EQ(kindsOf(1.3, 1), nothing);
  EXPECT_EQ(kindsOf(3, 1), change);
}

}  // namespace
}  // namespace falcon::instrument
