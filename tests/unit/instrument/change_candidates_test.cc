#include "instrument/change_candidates.h"

#include <gtest/gtest.h>

#include <vector>

namespace falcon::instrument {
namespace {

/// What there is to look at after 60 healthy samples and these, which are distances from the level.
class Candidates : public testing::Test {
 protected:
  Evidence after(const std::vector<double>& distances) {
    level_.enter(5, 0);
    std::vector<double> all(60);
    for (int i = 0; i < 60; ++i) all[static_cast<std::size_t>(i)] = i % 3 == 0 ? 0.01 : i % 3 == 1 ? -0.01 : 0;
    all.insert(all.end(), distances.begin(), distances.end());
    for (const double distance : all) {
      spikes_.add(distance, 0.01, samples_.added());
      posterior_.add(5 + distance, 0.01, spikes_.outlierRate());
      samples_.add(5 + distance);
    }
    return {limits_, samples_, level_, spikes_, posterior_, 0.01, 1, 60};
  }

 private:
  const ChangeLimits limits_{0.0953};
  Alternation samples_{0.0953};
  PresentLevel level_;
  SpikeModel spikes_{limits_};
  RunLengthPosterior posterior_;
};

TEST_F(Candidates, OfSteadySamplesAreNone) {
  const Evidence evidence = after({0, 0.01, -0.01});
  EXPECT_FALSE(lastingStreak(evidence, false));
  EXPECT_FALSE(clearestWindow(evidence));
  EXPECT_FALSE(drift(evidence));
}

TEST_F(Candidates, AreAStreakFromItsFirstSampleOn) {
  const auto candidate = lastingStreak(after({0.3, 0.31, 0.29}), false);
  ASSERT_TRUE(candidate);
  EXPECT_EQ(candidate->start, 60);
  EXPECT_NEAR(candidate->level, 5.3, 0.011);
  EXPECT_FALSE(candidate->crept);
}

TEST_F(Candidates, OfTwoSpikesHaveTwoThatBelong) {
  const Evidence evidence = after({0.02, 0.6, 0.7});
  EXPECT_EQ(belonging(evidence, {60, 5.6, 1}), 2);
}

TEST_F(Candidates, BeyondSpikesAreFourHigherOnesHoweverFarApart) {
  EXPECT_TRUE(isBeyondSpikes(after({0.6, 1.3, 0.9, 2})));
}

TEST_F(Candidates, BeyondSpikesAreNotWhatWasSoHighBefore) {
  EXPECT_FALSE(isBeyondSpikes(after({0.7, 0, 0, 0.6, 1.3, 0.9, 2})));
}

}  // namespace
}  // namespace falcon::instrument
