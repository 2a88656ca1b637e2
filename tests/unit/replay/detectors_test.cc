#include "replay/detectors.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "unit/instrument/recorded_run.h"

namespace falcon::replay {
namespace {

using enum instrument::ChangeKind;

std::vector<Recorded> steps(const std::vector<double>& levels, int length, double jitter) {
  std::mt19937 random(7);
  std::normal_distribution<> normal(0, jitter);
  std::vector<Recorded> times;
  for (const double level : levels)
    for (int i = 0; i < length; ++i)
      times.push_back({static_cast<std::int64_t>(times.size()) + 1, level * std::exp(normal(random))});
  return times;
}

std::vector<Event> eventsOf(std::string_view detector, const std::vector<Recorded>& times) {
  return replay(*makeDetector(detector), times);
}

class EveryDetector : public testing::TestWithParam<std::string_view> {};

TEST_P(EveryDetector, SeesAClearStepAndItsEnd) {
  const auto events = eventsOf(GetParam(), steps({100, 200, 100}, 40, 0.01));
  ASSERT_GE(events.size(), 2u);
  EXPECT_EQ(events.front().kind, onset);
  EXPECT_GE(events.front().iteration, 41);
  EXPECT_LE(events.front().iteration, 51);
  EXPECT_EQ(events.back().kind, relief);
  EXPECT_GE(events.back().iteration, 81);
}

TEST_P(EveryDetector, SaysNothingOfASteadyRun) {
  EXPECT_TRUE(eventsOf(GetParam(), steps({100}, 200, 0.002)).empty());
}

TEST_P(EveryDetector, TakesASpeedUpForNoOnset) {
  EXPECT_TRUE(eventsOf(GetParam(), steps({100, 60}, 40, 0.01)).empty());
}

INSTANTIATE_TEST_SUITE_P(All, EveryDetector, testing::ValuesIn(detectorNames),
                         [](const auto& chosen) { return std::string(chosen.param); });

TEST(Baselines, DifferInWhatTheyTakeForAChange) {
  const auto small = steps({100, 106}, 60, 0.005);  // clear, but below 10 %
  EXPECT_FALSE(eventsOf("bocd", small).empty());
  EXPECT_TRUE(eventsOf("bocdv", small).empty());
  EXPECT_TRUE(eventsOf("window", small).empty());
}

TEST(Replay, FalconFindsTheRecordedEpisodesAndNothingElse) {
  std::vector<Recorded> times;
  for (const double milliseconds : instrument::recordedMilliseconds)
    times.push_back({static_cast<std::int64_t>(times.size()) + 1, milliseconds});
  std::vector<Episode> episodes;
  for (const auto& [start, end] : instrument::recordedEpisodes) episodes.push_back({start, end});
  const auto events = eventsOf("falcon", times);
  EXPECT_EQ(events.size(), 2 * episodes.size());
  const Score score = scoreOf(events, episodes);
  EXPECT_EQ(score.truePositive, static_cast<int>(episodes.size()));
  EXPECT_EQ(score.falsePositive, 0);
  EXPECT_EQ(score.falseNegative, 0);
  EXPECT_LE(score.onsetDelayMedian.value_or(99), 3);
  EXPECT_LE(score.reliefDelayMedian.value_or(99), 5);
}

TEST(Threshold, IsWhatEachDetectorThatVerifiesIsTold) {
  const auto times = steps({100, 117, 100}, 60, 0.003);
  const auto sees = [&](std::string_view detector, double threshold) {
    return !replay(*makeDetector(detector, threshold), times).empty();
  };
  for (const std::string_view detector : {"falcon", "bocdv", "window"}) {
    EXPECT_TRUE(sees(detector, usualThreshold)) << detector;
    EXPECT_FALSE(sees(detector, 0.3)) << detector;
  }
  EXPECT_TRUE(sees("bocd", 0.3)) << "it counts all";
}

}  // namespace
}  // namespace falcon::replay
