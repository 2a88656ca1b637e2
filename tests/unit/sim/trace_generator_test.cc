#include "sim/trace_generator.h"

#include <gtest/gtest.h>

#include <cmath>

namespace falcon::sim {
namespace {

TEST(SimulatedJobs, AreTheSameForTheSameSeed) {
  const SimulatedJobs jobs(20, 7), same(20, 7), others(20, 8);
  int different = 0;
  for (int i = 0; i < jobs.count(); ++i) {
    EXPECT_EQ(jobs[i].milliseconds, same[i].milliseconds);
    different += jobs[i].milliseconds != others[i].milliseconds;
  }
  EXPECT_EQ(different, 20);
}

TEST(SimulatedJobs, AreMixedAsThePapersAre) {
  const SimulatedJobs jobs(499, 3);
  int single = 0, singleSlow = 0, four = 0, fourSlow = 0;
  for (int i = 0; i < jobs.count(); ++i) {
    const auto job = jobs[i];
    const bool isSingle = job.population == &singleNode;
    ++(isSingle ? single : four);
    (isSingle ? singleSlow : fourSlow) += !job.episodes.empty();
  }
  EXPECT_EQ(single, 392);
  EXPECT_EQ(four, 107);
  EXPECT_LE(singleSlow, 20);  // 6 expected
  EXPECT_GE(fourSlow, 25);    // 43 expected
  EXPECT_LE(fourSlow, 61);
}

TEST(SimulatedJobs, HaveTheirEpisodesInOrderAndInside) {
  const SimulatedJobs jobs(499, 4);
  for (int i = 0; i < jobs.count(); ++i) {
    const auto job = jobs[i];
    std::int64_t before = 10;
    for (const auto& episode : job.episodes) {
      EXPECT_GT(episode.labels.start, before);
      EXPECT_GT(episode.labels.end, episode.labels.start);
      EXPECT_LE(episode.labels.end, static_cast<std::int64_t>(job.milliseconds.size()) + 1);
      EXPECT_LE(episode.atSize, episode.labels.end - episode.labels.start);
      before = episode.labels.end;
    }
  }
}

/// The labels say what the numbers show: strong episodes are slower than the rest of the job by about their size.
TEST(SimulatedJobs, AreSlowWhereTheLabelsSayIt) {
  const SimulatedJobs jobs(499, 5);
  int strong = 0;
  for (int i = 0; i < jobs.count(); ++i) {
    const auto job = jobs[i];
    const auto times = timesOf(job);
    std::vector<bool> slow(times.size(), false);
    for (const auto& episode : job.episodes)
      for (auto k = episode.labels.start; k < episode.labels.end; ++k) slow[static_cast<std::size_t>(k - 1)] = true;
    std::vector<double> healthy;
    for (std::size_t k = 3; k < times.size(); ++k)
      if (!slow[k]) healthy.push_back(times[k].milliseconds);
    std::sort(healthy.begin(), healthy.end());
    for (const auto& episode : job.episodes) {
      if (strengthOf(episode, job) != Strength::strong || healthy.size() < 20) continue;
      std::vector<double> inside;
      for (auto k = episode.labels.end - episode.atSize; k < episode.labels.end; ++k)
        inside.push_back(times[static_cast<std::size_t>(k - 1)].milliseconds);
      std::sort(inside.begin(), inside.end());
      const double change = inside[inside.size() / 2] / healthy[healthy.size() / 2] - 1;
      EXPECT_GT(change, 0.3 * episode.size) << "job " << i;
      EXPECT_LT(change, 2 * episode.size + 0.3) << "job " << i;
      ++strong;
    }
  }
  EXPECT_GT(strong, 20);
}

TEST(Strength, HasItsThreeBounds) {
  SimulatedJob job{&singleNode, {}, {}, {}, 0.03};
  EXPECT_EQ(strengthOf({{100, 150}, 0.04, 50}, job), Strength::below5Percent);
  EXPECT_EQ(strengthOf({{100, 150}, 0.09, 50}, job), Strength::below10Percent);
  EXPECT_EQ(strengthOf({{100, 119}, 0.5, 19}, job), Strength::shorterThan20);
  EXPECT_EQ(strengthOf({{100, 150}, 0.12, 50}, job), Strength::strong);
  job.deviationOfTen = 0.04;
  EXPECT_EQ(strengthOf({{100, 150}, 0.12, 50}, job), Strength::insideNoise);
}

}  // namespace
}  // namespace falcon::sim
