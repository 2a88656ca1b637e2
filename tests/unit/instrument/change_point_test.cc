#include "instrument/change_point.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>

#include "harness/thoroughness.h"
#include "unit/instrument/recorded_run.h"

namespace falcon::instrument {
namespace {

using Noise = std::function<double(int, std::mt19937&)>;

double normal(std::mt19937& random) {
  return std::normal_distribution<>()(random);
}
double uniform(std::mt19937& random) {
  return std::uniform_real_distribution<>()(random);
}
Noise lognormal(double sigma) {
  return [sigma](int, std::mt19937& random) { return std::exp(sigma * normal(random)); };
}
Noise withSpikes(Noise noise, double share) {
  return [=](int i, std::mt19937& random) {
    const double factor = noise(i, random);
    return uniform(random) < share ? factor * (1.5 + 2 * uniform(random)) : factor;
  };
}

struct Found {
  ChangeKind kind;
  int iteration;
};

TEST(ChangePoints, OfTheRecordedRunAreItsEpisodesAndNothingElse) {
  ChangePointDetector detector;
  std::vector<Found> found;
  int iteration = 0;
  for (const double milliseconds : recordedMilliseconds) {
    ++iteration;
    if (const auto change = detector.add(milliseconds)) found.push_back({change->kind, iteration});
  }
  ASSERT_EQ(found.size(), 2 * std::size(recordedEpisodes));
  for (size_t i = 0; i < std::size(recordedEpisodes); ++i) {
    EXPECT_EQ(found[2 * i].kind, ChangeKind::onset);
    EXPECT_GE(found[2 * i].iteration, recordedEpisodes[i].start);
    EXPECT_LE(found[2 * i].iteration, recordedEpisodes[i].start + 3);
    EXPECT_EQ(found[2 * i + 1].kind, ChangeKind::relief);
    EXPECT_GE(found[2 * i + 1].iteration, recordedEpisodes[i].end);
    EXPECT_LE(found[2 * i + 1].iteration, recordedEpisodes[i].end + 5);
  }
}

struct NoiseCase {
  const char* name;
  Noise noise;
};

class HealthyNoise : public testing::TestWithParam<NoiseCase> {};

TEST_P(HealthyNoise, RaisesNoAlarm) {
  for (unsigned seed = 0; seed < 10; ++seed) {
    std::mt19937 random(seed);
    ChangePointDetector detector;
    for (int i = 0; i < 2000; ++i)
      ASSERT_FALSE(detector.add(100 * GetParam().noise(i, random)).has_value()) << "seed " << seed << ", sample " << i;
  }
}
INSTANTIATE_TEST_SUITE_P(
    Kinds, HealthyNoise,
    testing::Values(NoiseCase{"steady", lognormal(0.003)}, NoiseCase{"jitter5", lognormal(0.05)},
                    NoiseCase{"jitter10", lognormal(0.10)}, NoiseCase{"jitter20", lognormal(0.20)},
                    NoiseCase{"alternating", [](int i, std::mt19937&) { return i % 2 ? 1.2 : 0.8; }},
                    NoiseCase{"uniform", [](int, std::mt19937& random) { return 0.8 + 0.4 * uniform(random); }},
                    NoiseCase{"spikes1", withSpikes(lognormal(0.003), 0.01)},
                    NoiseCase{"spikes2", withSpikes(lognormal(0.05), 0.02)},
                    NoiseCase{"spikes5", withSpikes(lognormal(0.10), 0.05)},
                    NoiseCase{"everyTenth",
                              [](int i, std::mt19937& random) {
                                return (i % 10 == 9 ? 3 : 1) * std::exp(0.05 * normal(random));
                              }}),
    [](const auto& chosen) { return std::string(chosen.param.name); });

struct StepCase {
  double jitter, factor;
  int within;       ///< iterations for nine onsets of ten
  int missedOfAll;  ///< of 200: not found in 40 iterations
};

class Steps : public testing::TestWithParam<StepCase> {};

TEST_P(Steps, AreFoundSoonAndLeadBackToHealthy) {
  const auto [jitter, factor, within, missedOfAll] = GetParam();
  int soon = 0, missed = 0, relieved = 0, others = 0;
  for (unsigned seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed + 1000);
    ChangePointDetector detector;
    int onset = -1, relief = -1;
    for (int i = 0; i < 160; ++i) {
      const bool slow = i >= 60 && i < 100;
      const auto change = detector.add(100 * (slow ? factor : 1) * std::exp(jitter * normal(random)));
      if (!change) continue;
      if (change->kind == ChangeKind::onset && onset < 0)
        onset = i;
      else if (change->kind == ChangeKind::relief && relief < 0)
        relief = i;
      else
        ++others;
    }
    EXPECT_TRUE(onset < 0 || onset >= 60) << "seed " << seed;
    missed += onset < 0;
    soon += onset >= 60 && onset < 60 + within;
    relieved += relief >= 100 && relief < 115;
  }
  EXPECT_LE(missed, missedOfAll);
  EXPECT_GE(soon, 180);
  EXPECT_GE(relieved, factor > 1.4 || jitter < 0.1 ? 190 : 120);
  EXPECT_LE(others, 4);
}
INSTANTIATE_TEST_SUITE_P(JitterAndFactor, Steps,
                         testing::Values(StepCase{0.01, 1.15, 3, 0}, StepCase{0.01, 3.0, 3, 0},
                                         StepCase{0.05, 1.3, 4, 0}, StepCase{0.05, 1.5, 4, 0},
                                         StepCase{0.10, 1.3, 12, 4}, StepCase{0.10, 1.5, 5, 0},
                                         StepCase{0.10, 2.0, 4, 0}, StepCase{0.10, 3.0, 4, 0}));

/// The kinds of the changes in a run of steady levels, each `length` samples long.
std::vector<ChangeKind> kindsOf(const std::vector<double>& levels, int length = 30) {
  ChangePointDetector detector;
  std::mt19937 random(4);
  std::vector<ChangeKind> kinds;
  for (const double level : levels)
    for (int i = 0; i < length; ++i)
      if (const auto change = detector.add(level * std::exp(0.01 * normal(random)))) kinds.push_back(change->kind);
  return kinds;
}

TEST(ChangePoints, HaveFourKinds) {
  using enum ChangeKind;
  EXPECT_EQ(kindsOf({100, 150, 200, 130, 100}), (std::vector{onset, worsening, easing, relief}));
  EXPECT_EQ(kindsOf({100, 112, 102}), (std::vector{onset, relief}));
}

TEST(ChangePoints, OfAHealthyJobThatSpeedsUpAreSilentAndLowerItsLevel) {
  using enum ChangeKind;
  EXPECT_EQ(kindsOf({100, 60}), std::vector<ChangeKind>{});
  EXPECT_EQ(kindsOf({100, 60, 80}), std::vector{onset});
}

TEST(ChangePoints, SeeADriftOfSmallSteps) {
  using enum ChangeKind;
  for (const double step : {3, 4}) {
    auto kinds = kindsOf({100, 100 + step, 100 + 2 * step, 100 + 3 * step, 100 + 4 * step}, 80);
    std::erase(kinds, minor);  // on the way there
    ASSERT_FALSE(kinds.empty()) << "steps of " << step;
    EXPECT_EQ(kinds.front(), onset);
    EXPECT_EQ(std::count(kinds.begin(), kinds.end(), relief), 0) << "it never came back, steps of " << step;
  }
}

/// In how many jobs the times `factor(iteration, random)` raise an onset.
int jobsWithOnset(int seeds, int length, const Noise& factor) {
  int jobs = 0;
  for (int seed = 0; seed < seeds; ++seed) {
    std::mt19937 random(static_cast<unsigned>(seed));
    ChangePointDetector detector;
    bool found = false;
    for (int i = 0; i < length; ++i) {
      const auto change = detector.add(100 * factor(i, random));
      found = found || (change && change->kind == ChangeKind::onset);
    }
    jobs += found;
  }
  return jobs;
}

TEST(ChangePoints, AreSeenInAYoungJobWhereSpikesMayBeASecondMode) {
  // Slow iterations jitter more than healthy ones: some lie nearer to the healthy level, and not all stand in a row.
  const auto jittersWhileSlow = [](int i, std::mt19937& random) {
    const double noise = std::exp((i < 30 ? 0.005 : 0.05) * normal(random));
    return noise * (i == 11 || i == 17 ? 1.3 : i < 30 ? 1 : 1.15);
  };
  EXPECT_GE(jobsWithOnset(100, 90, jittersWhileSlow), 95);
}

/// Forty iterations that are a tenth too long and scatter by 15 %, then calm ones.
double unevenAtFirst(int i, std::mt19937& random) {
  return i < 40 ? 1.1 * std::exp(0.15 * normal(random)) : std::exp(0.03 * normal(random));
}

TEST(ChangePoints, AreSeenSoonInAJobThatHasCalmedDown) {
  const auto slowsDown = [](int from) {
    return [=](int i, std::mt19937& random) { return (i < from ? 1 : 1.2) * unevenAtFirst(i, random); };
  };
  EXPECT_GE(jobsWithOnset(test::samples(200), 128, slowsDown(120)), test::samples(190));
  EXPECT_GE(jobsWithOnset(test::samples(200), 84, slowsDown(76)), test::samples(150));
  EXPECT_LE(jobsWithOnset(test::samples(1000), 500, unevenAtFirst), test::samples(5));
}

// The first three slow ones may be a fail-slow. Those that come again and again are the job's own.
TEST(ChangePoints, AreNoEvaluationOfThreeIterationsButTheFirst) {
  ChangePointDetector detector;
  std::mt19937 random(5);
  std::vector<int> onsets;
  for (int i = 1; i <= 500; ++i) {
    const bool evaluation = i % 40 >= 37, slow = i >= 405 && i < 435;
    const auto change = detector.add((evaluation ? 200 : slow ? 150 : 100) * std::exp(0.02 * normal(random)));
    if (change && change->kind == ChangeKind::onset) onsets.push_back(i);
  }
  ASSERT_EQ(onsets.size(), 2u);
  EXPECT_EQ(onsets[0], 39);
  EXPECT_GE(onsets[1], 405);
  EXPECT_LE(onsets[1], 410);
}

// Noise with a long tail to one side raises false alarms. They end.
TEST(ChangePoints, LeaveALevelThatFollowedItsSamplesBackToTheHealthyOne) {
  int onsets = 0;
  for (unsigned seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    ChangePointDetector detector;
    for (int i = 0; i < 1000; ++i) {
      const auto change = detector.add(100 - 10 * std::log(1 - uniform(random)));
      onsets += change && change->kind == ChangeKind::onset;
    }
    EXPECT_FALSE(detector.slow()) << "seed " << seed;
  }
  EXPECT_GE(onsets, 3) << "otherwise this shows nothing";
}

// Three spikes in a row look like an onset; to BOCD they are outliers, so that it sees no way back either.
TEST(ChangePoints, AreOverSoonWhereTheyWereThreeSpikes) {
  int onsets = 0, late = 0;
  for (unsigned seed = 0; seed < 100; ++seed) {
    std::mt19937 random(seed);
    ChangePointDetector detector;
    constexpr double spikes[] = {1.9, 2.85, 2.7};
    for (int i = 0; i < 312; ++i) {
      const double factor = i >= 300 && i < 303 ? spikes[i - 300] : 1;
      const auto change = detector.add(100 * factor * std::exp(0.003 * normal(random)));
      onsets += change && change->kind == ChangeKind::onset;
    }
    late += detector.slow();
  }
  EXPECT_GE(onsets, 90) << "otherwise this shows nothing";
  EXPECT_EQ(late, 0);
}

/// Of `jobs` of which iterations 300 to 360 are slow: those whose onset is known within 5 of its start and whose relief
/// within 10 of its end, and which have no changes outside of these.
int jobsFollowed(int jobs, const std::function<double(int i, bool slow, std::mt19937&)>& milliseconds) {
  int followed = 0;
  for (int seed = 0; seed < jobs; ++seed) {
    std::mt19937 random(static_cast<unsigned>(seed));
    ChangePointDetector detector;
    std::vector<Found> found;
    for (int i = 0; i < 420; ++i)
      if (const auto change = detector.add(milliseconds(i, i >= 300 && i < 360, random)))
        found.push_back({change->kind, i});
    const auto between = [](const Found& change, int first, int last) {
      return change.iteration >= first && change.iteration <= last;
    };
    followed += found.size() >= 2 && found.front().kind == ChangeKind::onset && between(found.front(), 300, 305) &&
                found.back().kind == ChangeKind::relief && between(found.back(), 360, 370);
  }
  return followed;
}

// More than a tenth of the iterations then, and no noise all the same.
TEST(ChangePoints, AreSeenAmongFrequentEvaluations) {
  for (const int every : {8, 9, 10})
    EXPECT_GE(jobsFollowed(50,
                           [every](int i, bool slow, std::mt19937& random) {
                             const double evaluation = i % every == 0 ? 3 * std::exp(0.03 * normal(random)) : 1;
                             return (slow ? 130 : 100) * evaluation * std::exp(0.02 * normal(random));
                           }),
              43)
        << "every " << every;
}

// Not all are relieved within ten: to the scatter of such a slow level the healthy one is near.
TEST(ChangePoints, AreSeenWhereSlowIterationsAlternate) {
  EXPECT_GE(jobsFollowed(50,
                         [](int i, bool slow, std::mt19937& random) {
                           return 100 * (!slow ? 1 : i % 2 == 0 ? 1.2 : 2) * std::exp(0.02 * normal(random));
                         }),
            28);
}

TEST(ChangePoints, AreSeenWhereAnAlternationSlipsItsPhaseOrEnds) {
  const auto alternating = [](int slips, int end) {
    return [=](int i, bool slow, std::mt19937& random) {
      const double turn = i >= end ? 1 : (i + i / slips) % 2 == 0 ? 1.2 : 0.8;
      return (slow ? 140 : 100) * turn * std::exp(0.02 * normal(random));
    };
  };
  EXPECT_GE(jobsFollowed(50, alternating(70, 1000)), 45);
  EXPECT_GE(jobsFollowed(50, alternating(1000, 290)), 45);
}

TEST(ChangePoints, SeeStepsThatAreEachInsideTheNoise) {
  const auto stairs = [](int i, std::mt19937& random) {
    const int step = i < 100 ? 0 : (i - 60) / 40;
    return std::exp(0.06 * step + 0.03 * normal(random));
  };
  EXPECT_GE(jobsWithOnset(100, 180, stairs), 95);
}

// The first step of 8 % is no change. The second takes the job 16 % above its healthy level.
TEST(ChangePoints, SeeTheStepThatTakesAStaircaseBeyondTheThreshold) {
  const auto stairs = [](int i, std::mt19937& random) {
    const int step = i < 100 ? 0 : i < 140 ? 1 : 2;
    return (1 + 0.08 * step) * std::exp(0.01 * normal(random));
  };
  EXPECT_GE(jobsWithOnset(100, 146, stairs), 60);
  EXPECT_LE(jobsWithOnset(100, 139, stairs), 15);
}

TEST(ChangePoints, AreNotHealthyIterationsThatAlternateByChance) {
  const auto twoModes = [](int, std::mt19937& random) {
    return (uniform(random) < 0.5 ? 0.8 : 1.2) * std::exp(0.01 * normal(random));
  };
  EXPECT_LE(jobsWithOnset(test::samples(1000), 500, twoModes), test::samples(13));
}

TEST(ChangePoints, AreNeverASingleSlowIteration) {
  for (const int at : {8, 20, 100}) {
    ChangePointDetector detector;
    for (int i = 0; i < 200; ++i) EXPECT_FALSE(detector.add(i == at ? 1000 : 100 + i % 2).has_value());
  }
}

double withTwoSpikes(int i, std::mt19937& random) {
  return i == 200 || i == 201 ? 1.5 + 2 * uniform(random) : 1;
}

TEST(ChangePoints, AreNeverTwoSpikesHoweverHigh) {
  const auto alone = [](int i, std::mt19937& random) {
    return withTwoSpikes(i, random) * std::exp(0.003 * normal(random));
  };
  const auto besideASmallOne = [=](int i, std::mt19937& random) { return (i == 199 ? 1.07 : 1) * alone(i, random); };
  const auto onAGrowth = [=](int i, std::mt19937& random) { return (1 + 1e-4 * i) * alone(i, random); };
  EXPECT_EQ(jobsWithOnset(test::samples(200), 260, alone), 0);
  EXPECT_EQ(jobsWithOnset(test::samples(200), 260, besideASmallOne), 0);
  EXPECT_EQ(jobsWithOnset(test::samples(200), 260, onAGrowth), 0);
}

TEST(ChangePoints, OfSeveralTimesTheLevelAreKnownWithinFourIterationsHoweverWild) {
  for (const double wildness : {0.2, 0.4}) {
    const auto wild = [=](int i, std::mt19937& random) {
      const double spike = uniform(random) < 0.01 ? 1.2 + 0.3 * uniform(random) : 1;
      return i < 200 ? spike * std::exp(0.02 * normal(random)) : 3.5 * std::exp(wildness * normal(random));
    };
    EXPECT_GE(jobsWithOnset(test::samples(200), 204, wild), test::samples(wildness < 0.3 ? 195 : 170)) << wildness;
    EXPECT_LE(jobsWithOnset(test::samples(200), 202, wild), test::samples(2))
        << "of two iterations, and a spike before them";
  }
}

TEST(ChangePoints, OfAWildSlowLevelAreItsEnds) {
  int others = 0;
  for (unsigned seed = 0; seed < 100; ++seed) {
    std::mt19937 random(seed);
    ChangePointDetector detector;
    for (int i = 0; i < 300; ++i) {
      const double factor = i >= 200 && i < 240 ? 3.5 * std::exp(0.4 * normal(random)) : 1;
      const auto change = detector.add(100 * factor * std::exp(0.02 * normal(random)));
      others += change && (change->kind == ChangeKind::worsening || change->kind == ChangeKind::easing);
    }
    EXPECT_FALSE(detector.slow()) << "seed " << seed;
  }
  EXPECT_LE(others, 20);
}

// By schedule: a longer window of attention, sequences that become longer.
TEST(ChangePoints, OfAGrowthByDesignAreOneOnset) {
  for (const double most : {1.14, 1.3, 2.0})
    for (const int over : {300, 600, 2000})
      for (const double noise : {0.003, 0.01}) {
        std::mt19937 random(9);
        ChangePointDetector detector;
        std::vector<ChangeKind> told;
        for (int i = 0; i < over + 400; ++i) {
          const double level = 1 + (most - 1) * std::clamp((i - 60.0) / over, 0.0, 1.0);
          if (const auto change = detector.add(100 * level * std::exp(noise * normal(random))))
            told.push_back(change->kind);
        }
        EXPECT_EQ(told, std::vector{ChangeKind::onset}) << most << " over " << over << ", noise " << noise;
      }
}

// What was learnt in a warm-up would hide what is a tenth slower than the job.
TEST(ChangePoints, AreMeasuredByTheHealthyLevelWhichComesDownAfterAWarmUp) {
  for (const double warm : {1.05, 1.08, 1.11})
    for (const int length : {20, 40, 100}) {
      std::mt19937 random(3);
      ChangePointDetector detector;
      const auto level = [&](int i) { return i < length ? warm : 1; };
      for (int i = 0; i < 260; ++i)
        EXPECT_FALSE(detector.add(100 * level(i) * std::exp(0.005 * normal(random)))) << "iteration " << i;
      EXPECT_NEAR(detector.healthyMilliseconds(), 100, 2.5) << warm << " for " << length;
      EXPECT_TRUE(detector.isHealthyBelow(106, 12));
      EXPECT_FALSE(detector.isHealthyBelow(104, 12));
    }
}

TEST(ChangePoints, StartOverAfterARebase) {
  ChangePointDetector detector;
  for (int i = 0; i < 30; ++i) EXPECT_FALSE(detector.add(100 + i % 2).has_value());
  EXPECT_NEAR(detector.healthyMilliseconds(), 100, 2);
  detector.rebase();
  EXPECT_EQ(detector.healthyMilliseconds(), 0);
  for (int i = 0; i < 30; ++i) EXPECT_FALSE(detector.add(150 + i % 2).has_value());
  EXPECT_NEAR(detector.healthyMilliseconds(), 150, 2);
}

TEST(ChangePoints, IgnoreWhatIsNoTime) {
  ChangePointDetector detector;
  for (int i = 0; i < 30; ++i)
    for (const double bad : {0.0, -1.0, std::nan(""), double{INFINITY}}) {
      EXPECT_FALSE(detector.add(bad).has_value());
      EXPECT_FALSE(detector.add(100).has_value());
    }
  EXPECT_NEAR(detector.currentMilliseconds(), 100, 1e-6);
}

}  // namespace
}  // namespace falcon::instrument
