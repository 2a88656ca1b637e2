// What is healthy, and what an earlier run says of it.
#include <cmath>
#include <random>

#include "controller_fixture.h"

namespace falcon::control::test {
namespace {

/// Kept of a few iterations, then of many.
constexpr std::size_t ofEachBaseline = 2;

class ControllerBaseline : public ControllerTest {
 protected:
  /// Of jobs whose baselines come to `kept`.
  ControllerSettings keeps() {
    ControllerSettings settings = automatic();
    settings.keep = [this](const StoredBaseline& baseline) { kept.push_back(baseline); };
    return settings;
  }
  /// The same after a healthy run, of which the first baseline is.
  ControllerSettings restarts() {
    ControllerSettings settings = keeps();
    start(settings);
    settings.stored = kept.at(0);
    return settings;
  }

  std::vector<StoredBaseline> kept;
};

int onsetsOf(const FakeJob& job) {
  return job.count(onset) + job.count(suspicion) + job.count(trapClosed) + job.count(verdict);
}

TEST_F(ControllerBaseline, AChangeOfTheJobsCallsIsAnEventAndNoAlarm) {
  FakeJob& job = start();
  job.pattern = 2;
  job.everyone = 1.6;  // longer sequences
  ASSERT_TRUE(job.runUntil(patternChanged, 30)) << job.text();
  const Event changed = *job.last(patternChanged);
  EXPECT_NE(changed.text.find("20 calls"), std::string::npos) << changed.text;
  ASSERT_TRUE(job.runUntil(baselineTaken, 60, 2)) << job.text();
  job.run(60);
  EXPECT_EQ(onsetsOf(job), 0) << job.text();
  EXPECT_EQ(job.count(patternChanged), 1);
  EXPECT_GT(job.last(baselineTaken)->afterMilliseconds, 1.4 * changed.beforeMilliseconds);

  job.compute[2] = 2;  // against the new baseline
  EXPECT_TRUE(job.runUntil(verdict, 60)) << job.text();
  EXPECT_EQ(job.last(verdict)->culprit, slowRank(2)) << job.text();
}

// The first iterations were quicker than the job's usual ones, by chance.
TEST_F(ControllerBaseline, OfAFewIterationsGivesWayToThatOfMany) {
  FakeJob job(keeps(), {4, 2, 1});
  job.everyone = 0.94;
  ASSERT_TRUE(job.runUntil(baselineTaken, 60)) << job.text();
  const double first = job.last(baselineTaken)->afterMilliseconds;
  job.everyone = 1;
  job.run(30);
  EXPECT_EQ(job.count(baselineTaken), 1) << job.text();
  EXPECT_EQ(onsetsOf(job), 0) << job.text();
  EXPECT_NEAR(kept.back().iterationSeconds * 1e3, first / 0.94, 0.02 * first);

  job.compute[3] = 1.45;
  ASSERT_TRUE(job.runUntil(verdict, 60)) << job.text();
  EXPECT_EQ(job.last(verdict)->culprit, slowRank(3)) << job.text();
}

TEST_F(ControllerBaseline, IsTakenAnewWhereTheJobHasBecomeFaster) {
  FakeJob job(keeps(), {4, 2, 1});
  job.everyone = 1.5;  // it warms up
  ASSERT_TRUE(job.runUntil(baselineTaken, 60)) << job.text();
  job.run(20);
  const double first = job.last(baselineTaken)->afterMilliseconds;
  job.everyone = 1;
  ASSERT_TRUE(job.runUntil(baselineTaken, 60, 2)) << job.text();
  EXPECT_LT(job.last(baselineTaken)->afterMilliseconds, 0.8 * first) << job.text();
  job.run(60);
  EXPECT_EQ(job.count(baselineTaken), 2) << job.text();
  EXPECT_EQ(onsetsOf(job), 0) << job.text();
  ASSERT_EQ(kept.size(), 2 * ofEachBaseline);
  EXPECT_LT(kept[2].iterationSeconds, 0.8 * kept[1].iterationSeconds);

  job.compute[3] = 1.45;  // as slow as all were at first
  ASSERT_TRUE(job.runUntil(verdict, 60)) << job.text();
  EXPECT_EQ(job.last(verdict)->culprit, slowRank(3)) << job.text();
}

TEST_F(ControllerBaseline, StaysWhereSomebodyBecomesSlowWhileAFasterOneIsTaken) {
  FakeJob job(automatic(), {4, 2, 1});
  job.everyone = 1.5;
  ASSERT_TRUE(job.runUntil(baselineTaken, 60)) << job.text();
  job.run(20);
  job.everyone = 1;
  ASSERT_TRUE(job.runUntil(EventKind::periodKnown, 60, 2)) << job.text();
  job.compute[3] = 4;
  ASSERT_TRUE(job.runUntil(verdict, 60)) << job.text();
  EXPECT_EQ(job.last(verdict)->culprit, slowRank(3)) << job.text();
  EXPECT_EQ(job.count(baselineTaken), 1) << job.text();
}

// Iterations so unsteady that the detector needs longer to see a change than a baseline takes.
TEST_F(ControllerBaseline, StaysWhereWhatIsTakenForAFasterOneIsNotFaster) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    FakeJob job(automatic(), {4, 1, 1});
    std::mt19937 random(seed);
    std::normal_distribution<double> noise(0, 0.3);
    const auto trainUntil = [&](EventKind kind, int count, double level) {
      for (int i = 0; i < 600 && job.count(kind) < count; ++i) {
        job.everyone = level * std::exp(noise(random));
        job.run(0.1);
      }
      return job.count(kind) >= count;
    };
    ASSERT_TRUE(trainUntil(baselineTaken, 1, 1.5)) << job.text();
    ASSERT_TRUE(trainUntil(EventKind::periodKnown, 2, 1)) << "seed " << seed << "\n" << job.text();
    job.links[{1, 2}] = 15;
    ASSERT_TRUE(trainUntil(verdict, 1, 1)) << "seed " << seed << "\n" << job.text();
    EXPECT_EQ(job.last(verdict)->culprit, slowLink(1, 2)) << "seed " << seed << "\n" << job.text();
  }
}

// A machine that gives more for twenty iterations: less than the detector and a baseline take.
TEST_F(ControllerBaseline, StaysWhereTheJobWasFasterForAMomentAndNothingIsSaid) {
  int moments = 0;
  for (unsigned seed = 0; seed < 20; ++seed) {
    FakeJob job(automatic(), {4, 2, 1});
    std::mt19937 random(seed);
    std::normal_distribution<double> noise(0, 0.06);
    const auto train = [&](double level, int steps) {
      for (int i = 0; i < steps; ++i) {
        job.everyone = level * std::exp(noise(random));
        job.run(0.1);
      }
    };
    for (int i = 0; i < 100 && job.count(baselineTaken) == 0; ++i) train(1, 5);
    train(1, 200);
    const int begun = job.count(EventKind::periodKnown);
    for (int i = 0; i < 100 && job.count(EventKind::periodKnown) == begun; ++i) train(0.7, 1);
    if (job.count(EventKind::periodKnown) == begun) continue;
    ++moments;
    train(1, 400);
    EXPECT_EQ(job.count(baselineTaken), 1) << "seed " << seed << "\n" << job.text();
    EXPECT_EQ(onsetsOf(job), 0) << "seed " << seed << "\n" << job.text();
  }
  EXPECT_GT(moments, 10);
}

// A GPU whose clock goes up for some iterations, again and again.
TEST_F(ControllerBaseline, OfAJobThatIsFasterForMomentsOnlyIsNotBegunAgainAndAgain) {
  FakeJob job(automatic(), {4, 2, 1});
  ASSERT_TRUE(job.runUntil(baselineTaken, 60)) << job.text();
  job.run(20);
  for (int moment = 0; moment < 30; ++moment) {
    job.everyone = 0.8;
    job.runUntil(EventKind::periodKnown, 4, job.count(EventKind::periodKnown) + 1);
    job.everyone = 1;
    job.run(3);
  }
  EXPECT_LE(job.count(EventKind::periodKnown), 1 + 8) << job.text();
}

TEST_F(ControllerBaseline, StaysWhereTheJobIsSlowAgainBeforeAFasterOneIsBegun) {
  FakeJob job(automatic(), {4, 2, 1});
  ASSERT_TRUE(job.runUntil(baselineTaken, 60)) << job.text();
  job.run(20);
  const double seconds = job.last(baselineTaken)->afterMilliseconds * 1e-3;
  Samples faster;  // for a while, all between two looks of the controller
  for (int i = 0; i < 60; ++i)
    faster.samples.push_back({.index = 1000 + i, .seconds = (i < 50 ? 0.6 : 1) * seconds, .pattern = 1, .calls = 10});
  job.say(0, faster);
  job.run(60);
  EXPECT_EQ(onsetsOf(job), 0) << "back at the pace of the baseline\n" << job.text();
  EXPECT_EQ(job.count(baselineTaken), 1) << "of the slow pace" << job.text();

  job.compute[3] = 2;
  ASSERT_TRUE(job.runUntil(verdict, 60)) << job.text();
  EXPECT_EQ(job.last(verdict)->culprit, slowRank(3)) << job.text();
}

TEST_F(ControllerBaseline, OfAnEarlierRunTellsTheReliefOfAJobInWhichNobodyWasNamed) {
  FakeJob job(restarts(), {4, 2, 1});
  const double healthy = kept[0].iterationSeconds * 1e3;
  job.everyone = 1.5;
  ASSERT_TRUE(job.runUntil(onset, 60)) << job.text();
  job.run(20);
  job.everyone = 1;
  ASSERT_TRUE(job.runUntil(relief, 60)) << job.text();
  EXPECT_NEAR(job.last(relief)->afterMilliseconds, healthy, 0.05 * healthy) << job.text();
  job.run(60);
  EXPECT_EQ(job.count(relief), 1) << job.text();
  EXPECT_EQ(job.count(onset), 1) << job.text();
  EXPECT_EQ(kept.size(), 1 + ofEachBaseline) << "of its healthy pace";
}

TEST_F(ControllerBaseline, IsKeptAndARestartAtTheSamePaceSaysNothing) {
  const ControllerSettings settings = restarts();
  ASSERT_EQ(kept.size(), 1u);
  EXPECT_EQ(kept[0].members.size(), 8u);
  EXPECT_FALSE(kept[0].members[0].transfers.empty());
  EXPECT_GT(kept[0].iterationSeconds, 0);

  FakeJob& job = start(settings);
  job.run(60);
  EXPECT_EQ(onsetsOf(job), 0) << job.text();
  EXPECT_EQ(kept.size(), 1 + ofEachBaseline);
}

TEST_F(ControllerBaseline, OfAnEarlierRunTellsWhoIsSlowFromTheStart) {
  FakeJob job(restarts(), {4, 2, 1});
  job.compute[3] = 2;
  ASSERT_TRUE(job.runUntil(onset, 60)) << job.text();
  EXPECT_NE(job.last(onset)->text.find("slow from the start"), std::string::npos) << job.text();
  EXPECT_NEAR(job.last(onset)->beforeMilliseconds, kept[0].iterationSeconds * 1e3, 1e-6);
  ASSERT_TRUE(job.runUntil(verdict, 60)) << job.text();
  EXPECT_EQ(job.last(verdict)->culprit, slowRank(3)) << job.text();
  EXPECT_EQ(kept.size(), 1u) << "a slow start must not become the healthy one";

  job.compute.clear();
  EXPECT_TRUE(job.runUntil(relief, 240)) << job.text();
}

TEST_F(ControllerBaseline, OfAnotherJobOfThisNameSaysNothing) {
  ControllerSettings settings = restarts();
  settings.stored->calls += 1;
  settings.stored->iterationSeconds /= 3;
  FakeJob& job = start(settings);
  job.run(30);
  EXPECT_EQ(onsetsOf(job), 0) << job.text();
}

class SlowFromTheStart : public ControllerBaseline {
 protected:
  // Nothing is kept of a slow start.
  static ControllerSettings keepsNothing() {
    ControllerSettings settings = automatic();
    settings.keep = [](const StoredBaseline&) { ADD_FAILURE() << "a slow start must not become the healthy one"; };
    return settings;
  }
};

TEST_F(SlowFromTheStart, ARankIsFoundByItsPeersWithoutABaseline) {
  FakeJob job(keepsNothing(), {4, 2, 1});
  job.compute[3] = 2;
  ASSERT_TRUE(job.runUntil(onset, 60)) << job.text();
  const Event slow = *job.last(onset);
  ASSERT_EQ(slow.suspects.size(), 1u) << job.text();
  EXPECT_EQ(slow.suspects[0].ranks, std::vector<Rank>{3}) << job.text();
  EXPECT_NEAR(slow.suspects[0].growth, 2, 0.1);
  EXPECT_LT(slow.beforeMilliseconds, 0.7 * slow.afterMilliseconds);
  EXPECT_EQ(slow.severity, 4);
  ASSERT_TRUE(job.runUntil(verdict, 60)) << job.text();
  EXPECT_EQ(job.last(verdict)->culprit, slowRank(3)) << job.text();
  job.compute.clear();
  EXPECT_TRUE(job.runUntil(relief, 240)) << job.text();
}

TEST_F(SlowFromTheStart, ALinkOfOneOfThreePipelinesIsFound) {
  FakeJob job(keepsNothing(), {4, 2, 1});
  job.links[{2, 3}] = 20;
  ASSERT_TRUE(job.runUntil(onset, 60)) << job.text();
  ASSERT_EQ(job.last(onset)->suspects.size(), 1u) << job.text();
  EXPECT_EQ(job.last(onset)->suspects[0].ranks, (std::vector<Rank>{2, 3})) << job.text();
  ASSERT_TRUE(job.runUntil(verdict, 60)) << job.text();
  EXPECT_EQ(job.last(verdict)->culprit, slowLink(2, 3)) << job.text();
}

TEST_F(SlowFromTheStart, MoreOfItIsAWorseningAndLessAnEasing) {
  ControllerSettings settings = keepsNothing();
  settings.mitigate = MitigateMode::off;
  FakeJob job(settings, {4, 2, 1});
  job.compute[3] = 2;
  ASSERT_TRUE(job.runUntil(verdict, 120)) << job.text();
  const double healthy = job.last(verdict)->beforeMilliseconds;
  job.run(30);
  for (int time = 1; time <= 2; ++time) {
    job.compute[3] = 4;
    ASSERT_TRUE(job.runUntil(worsening, 60, time)) << job.text();
    job.run(30);
    job.compute[3] = 2;
    ASSERT_TRUE(job.runUntil(easing, 60, time)) << job.text();
    job.run(30);
  }
  EXPECT_EQ(job.count(relief), 0) << job.text();
  job.compute.clear();
  ASSERT_TRUE(job.runUntil(relief, 240)) << job.text();
  EXPECT_EQ(job.last(relief)->culprit, slowRank(3));
  EXPECT_NEAR(job.last(relief)->afterMilliseconds, healthy, 0.2 * healthy) << "as measured";
  EXPECT_EQ(job.count(onset), 1) << job.text();
}

TEST_F(SlowFromTheStart, NothingIsSaidOfTwoPeers) {
  FakeJob job(automatic(), {2, 2, 1});
  job.compute[3] = 2;
  job.run(60);
  EXPECT_EQ(onsetsOf(job), 0) << job.text();
}

TEST_F(SlowFromTheStart, WhoIsSlowWhileTheJobWarmsUpIsNotNamed) {
  std::vector<StoredBaseline> kept;
  ControllerSettings settings = automatic();
  settings.keep = [&](const StoredBaseline& baseline) { kept.push_back(baseline); };
  FakeJob job(settings, {4, 2, 1});
  job.compute[3] = 1.5;
  ASSERT_TRUE(job.runUntil(baselineTaken, 30)) << job.text();
  job.compute.clear();
  job.run(60);
  EXPECT_EQ(onsetsOf(job), 0) << job.text();
  EXPECT_EQ(kept.size(), ofEachBaseline);
}

}  // namespace
}  // namespace falcon::control::test
