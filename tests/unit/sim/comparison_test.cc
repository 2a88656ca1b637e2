#include "sim/comparison.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>

namespace falcon::sim {
namespace {

/// FALCON_SIM_JOBS=10000 runs what docs/detection.md tells; a sample of it otherwise.
int jobsToTry() {
  const char* asked = std::getenv("FALCON_SIM_JOBS");
  if (asked) return std::atoi(asked);
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  return 300;
#else
  return 1500;
#endif
}

constexpr std::uint64_t seed = 1000;  // the detector was tuned on seeds 1 to 99
/// Of the first 10,000 jobs of this seed, as docs/detection.md tells them: those with a false onset, and those with a
/// strong episode that is missed. The first so many jobs are the same however many there are.
constexpr int documentedFalse[] = {728, 1655, 2638, 3381};
constexpr int documentedMissed[] = {335, 3441};

template <std::size_t size>
int among(const int (&jobs)[size], int count) {
  return static_cast<int>(std::count_if(std::begin(jobs), std::end(jobs), [=](int job) { return job < count; }));
}

TEST(Comparison, FalconFindsStrongEpisodesAndRaisesHardlyAFalseAlarm) {
  const SimulatedJobs jobs(jobsToTry(), seed);
  const auto results = compare(jobs, {"falcon"});
  const DetectorResult& falcon = results.front();
  const EpisodeCounts& strong = falcon.episodes[static_cast<std::size_t>(Strength::strong)];
  EXPECT_GE(strong.episodes, jobs.count() / 20);
  EXPECT_LE(falcon.jobsWithMissedStrong.size(), among(documentedMissed, jobs.count()))
      << testing::PrintToString(falcon.jobsWithMissedStrong);
  EXPECT_LE(falcon.falseOnsets, among(documentedFalse, jobs.count()))
      << "more than docs/detection.md tells: " << testing::PrintToString(falcon.jobsWithFalseOnset);
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
