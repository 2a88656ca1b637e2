#include "sim/comparison.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace falcon::sim {
namespace {

/// FALCON_SIM_JOBS=10000 runs what docs/detection.md tells; a sample of it otherwise.
int jobsToTry() {
  const char* asked = std::getenv("FALCON_SIM_JOBS");
  return asked ? std::atoi(asked) : 600;
}

constexpr std::uint64_t seed = 1000;  // the detector was tuned on seeds 1 to 99

TEST(Comparison, FalconFindsStrongEpisodesAndRaisesHardlyAFalseAlarm) {
  const SimulatedJobs jobs(jobsToTry(), seed);
  const auto results = compare(jobs, {"falcon"});
  const DetectorResult& falcon = results.front();
  const EpisodeCounts& strong = falcon.episodes[static_cast<std::size_t>(Strength::strong)];
  EXPECT_GE(strong.episodes, jobs.count() / 20);
  EXPECT_GE(strong.found, strong.episodes - 1 - strong.episodes / 100);
  EXPECT_LE(falcon.falseOnsets, 1 + jobs.count() / 1000);
  EXPECT_GE(falcon.relieved, falcon.ended * 9 / 10);
  EXPECT_LE(falcon.onsetDelayMedian, 5);
  EXPECT_LE(falcon.reliefDelayMedian, 5);
}

TEST(Comparison, CountsEveryJobAndEpisodeOnceForEachDetector) {
  const SimulatedJobs jobs(120, seed);
  int failSlow = 0, episodes = 0;
  for (int i = 0; i < jobs.count(); ++i) {
    failSlow += !jobs[i].episodes.empty();
    episodes += static_cast<int>(jobs[i].episodes.size());
  }
  for (const DetectorResult& result : compare(jobs, {"window", "bocdv"})) {
    int counted = 0;
    for (const EpisodeCounts& counts : result.episodes) {
      counted += counts.episodes;
      EXPECT_LE(counts.foundWithinFive, counts.found);
      EXPECT_LE(counts.found, counts.episodes);
    }
    EXPECT_EQ(counted, episodes);
    EXPECT_EQ(result.singleNode.failSlow + result.fourNodes.failSlow, failSlow);
    EXPECT_EQ(
        result.singleNode.healthy + result.singleNode.failSlow + result.fourNodes.healthy + result.fourNodes.failSlow,
        jobs.count());
  }
}

}  // namespace
}  // namespace falcon::sim
