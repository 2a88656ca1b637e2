#include "rebalance/micro_batch_split.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>
#include <random>

namespace falcon::rebalance {
namespace {

double bruteForce(std::span<const double> seconds, int total) {
  if (seconds.size() == 1) return seconds[0] * total;
  double best = INFINITY;
  for (int mine = 1; mine <= total - static_cast<int>(seconds.size()) + 1; ++mine)
    best = std::min(best, std::max(seconds[0] * mine, bruteForce(seconds.subspan(1), total - mine)));
  return best;
}

/// The least time T for which floor(T / t_i) micro-batches are enough; candidates are the multiples of the t_i.
double byThreshold(std::span<const double> seconds, int total) {
  std::vector<double> candidates;
  for (const double each : seconds)
    for (int m = 1; m <= total; ++m) candidates.push_back(each * m);
  std::sort(candidates.begin(), candidates.end());
  const auto enough = [&](double limit) {
    long sum = 0;
    for (const double each : seconds) {
      const auto most = static_cast<long>(std::floor(limit / each * (1 + 1e-12)));
      if (most < 1) return false;
      sum += most;
    }
    return sum >= total;
  };
  return *std::partition_point(candidates.begin(), candidates.end(), [&](double limit) { return !enough(limit); });
}

std::vector<double> randomSeconds(std::mt19937& random, int replicas) {
  std::vector<double> seconds(static_cast<size_t>(replicas));
  for (double& each : seconds) each = std::uniform_real_distribution<>(0.5, 3)(random);
  return seconds;
}

TEST(MicroBatchSplit, IsAsGoodAsBruteForce) {
  std::mt19937 random(1);
  for (int round = 0; round < 300; ++round) {
    const int replicas = 1 + static_cast<int>(random() % 4), total = replicas + static_cast<int>(random() % 12);
    const auto seconds = randomSeconds(random, replicas);
    const auto split = splitMicroBatches(seconds, total);
    ASSERT_TRUE(split);
    EXPECT_EQ(std::accumulate(split->begin(), split->end(), 0), total);
    EXPECT_GE(*std::min_element(split->begin(), split->end()), 1);
    EXPECT_NEAR(makespan(seconds, *split), bruteForce(seconds, total), 1e-9);
  }
}

TEST(MicroBatchSplit, IsExactForManyReplicasToo) {
  std::mt19937 random(2);
  for (const int replicas : {16, 64, 512}) {
    const auto seconds = randomSeconds(random, replicas);
    const int total = 8 * replicas + 5;
    const auto split = splitMicroBatches(seconds, total);
    ASSERT_TRUE(split);
    EXPECT_NEAR(makespan(seconds, *split), byThreshold(seconds, total), 1e-9);
  }
}

TEST(MicroBatchSplit, GivesNobodyMoreThanASlowerOneCouldTakeBack) {
  // What makes greedy exact: the last micro-batch anyone got would not have been done sooner elsewhere.
  std::mt19937 random(3);
  for (int round = 0; round < 200; ++round) {
    const auto seconds = randomSeconds(random, 8);
    const auto split = splitMicroBatches(seconds, 64);
    ASSERT_TRUE(split);
    for (size_t i = 0; i < seconds.size(); ++i)
      for (size_t k = 0; k < seconds.size(); ++k) {
        if ((*split)[i] == 1) continue;
        EXPECT_LE(seconds[i] * (*split)[i], seconds[k] * ((*split)[k] + 1) + 1e-12);
      }
  }
}

TEST(MicroBatchSplit, OfEqualReplicasIsEqualAndDeterministic) {
  for (int replicas = 1; replicas <= 9; ++replicas)
    for (int total = replicas; total < 40; ++total) {
      const auto split = splitMicroBatches(std::vector<double>(static_cast<size_t>(replicas), 0.1), total);
      ASSERT_TRUE(split);
      EXPECT_EQ(*split, equalSplit(replicas, total));
    }
}

TEST(MicroBatchSplit, TakesWorkFromTheSlowReplica) {
  const auto split = splitMicroBatches(std::vector<double>{1, 1, 2, 1}, 32);
  ASSERT_TRUE(split);
  EXPECT_EQ(*split, (std::vector<int>{10, 9, 4, 9}));
}

TEST(MicroBatchSplit, NamesWhatIsWrong) {
  EXPECT_EQ(splitMicroBatches({}, 4).error().code(), ErrorCode::invalidArgument);
  EXPECT_FALSE(splitMicroBatches(std::vector<double>{1, 1, 1}, 2));
  for (const double bad : {0.0, -1.0, double{INFINITY}, std::nan("")})
    EXPECT_FALSE(splitMicroBatches(std::vector<double>{1, bad}, 8)) << bad;
}

}  // namespace
}  // namespace falcon::rebalance
