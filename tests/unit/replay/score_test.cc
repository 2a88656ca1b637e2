#include "replay/score.h"

#include <gtest/gtest.h>

namespace falcon::replay {
namespace {

using enum instrument::ChangeKind;

Event at(instrument::ChangeKind kind, std::int64_t iteration) {
  return {kind, iteration, 100, 150, 0.95};
}

TEST(Score, CountsWhatWasFoundAndTheDelays) {
  const auto score = scoreOf({at(onset, 12), at(relief, 33), at(onset, 61), at(relief, 70)}, {{10, 30}, {60, 70}});
  EXPECT_EQ(score.truePositive, 2);
  EXPECT_EQ(score.falsePositive, 0);
  EXPECT_EQ(score.falseNegative, 0);
  EXPECT_DOUBLE_EQ(*score.onsetDelayMedian, 1.5);
  EXPECT_DOUBLE_EQ(*score.reliefDelayMedian, 1.5);
}

TEST(Score, AnEpisodeIsFoundWithinFiveIterations) {
  EXPECT_EQ(scoreOf({at(onset, 10)}, {{10, 30}}).truePositive, 1);
  EXPECT_EQ(scoreOf({at(onset, 15)}, {{10, 30}}).truePositive, 1);
  for (const int early : {9, 16}) {
    const auto score = scoreOf({at(onset, early)}, {{10, 30}});
    EXPECT_EQ(score.truePositive, 0) << early;
    EXPECT_EQ(score.falseNegative, 1) << early;
    EXPECT_FALSE(score.onsetDelayMedian) << early;
  }
}

TEST(Score, AnOnsetOutsideOfEveryEpisodeIsFalse) {
  const auto falsePositives = [](std::int64_t iteration) {
    return scoreOf({at(onset, iteration)}, {{10, 30}, {60, 70}}).falsePositive;
  };
  EXPECT_EQ(falsePositives(9), 1);
  EXPECT_EQ(falsePositives(16), 0);  // late, but not false
  EXPECT_EQ(falsePositives(35), 0);
  EXPECT_EQ(falsePositives(36), 1);
}

TEST(Score, FurtherOnsetsInsideCountNothing) {
  const auto score = scoreOf({at(onset, 11), at(onset, 14), at(onset, 20)}, {{10, 30}});
  EXPECT_EQ(score.truePositive, 1);
  EXPECT_EQ(score.falsePositive, 0);
  EXPECT_DOUBLE_EQ(*score.onsetDelayMedian, 1);
}

TEST(Score, OnlyOnsetsFindAndOnlyReliefsEnd) {
  const auto score = scoreOf({at(worsening, 11), at(easing, 31)}, {{10, 30}});
  EXPECT_EQ(score.falseNegative, 1);
  EXPECT_EQ(score.falsePositive, 0);
  EXPECT_FALSE(score.reliefDelayMedian);
}

TEST(Score, ReliefsBeforeTheEndDoNotCount) {
  EXPECT_DOUBLE_EQ(*scoreOf({at(relief, 29), at(relief, 34)}, {{10, 30}}).reliefDelayMedian, 4);
}

}  // namespace
}  // namespace falcon::replay
