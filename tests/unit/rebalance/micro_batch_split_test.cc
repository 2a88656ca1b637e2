#include "rebalance/micro_batch_split.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <random>

namespace falcon::rebalance {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<Replica> replicasWith(const std::vector<double>& seconds) {
  std::vector<Replica> replicas;
  for (const double each : seconds) replicas.push_back({.secondsPerMicroBatch = each});
  return replicas;
}

/// Every split that the rules allow.
void forEverySplit(std::span<const Replica> replicas, const SplitRules& rules,
                   const std::function<void(std::span<const int>)>& visit, std::vector<int> before = {}) {
  const std::size_t at = before.size();
  const int left = rules.total - std::accumulate(before.begin(), before.end(), 0);
  if (at == replicas.size()) {
    if (left == 0) visit(before);
    return;
  }
  for (int mine = 0; mine <= left; mine += rules.multiple) {
    if (mine < replicas[at].least || mine > replicas[at].most) continue;
    auto with = before;
    with.push_back(mine);
    forEverySplit(replicas, rules, visit, with);
  }
}

int changedBy(std::span<const Replica> replicas, std::span<const int> split) {
  int changed = 0;
  for (std::size_t i = 0; i < replicas.size(); ++i) changed += split[i] != replicas[i].now;
  return changed;
}

/// The least time T for which floor(T / t_i) micro-batches are enough; candidates are the multiples of the t_i.
double byThreshold(std::span<const Replica> replicas, int total) {
  std::vector<double> candidates;
  for (const Replica& each : replicas)
    for (int m = 1; m <= total; ++m) candidates.push_back(each.secondsPerMicroBatch * m);
  std::sort(candidates.begin(), candidates.end());
  const auto enough = [&](double limit) {
    long sum = 0;
    for (const Replica& each : replicas) {
      const auto most = static_cast<long>(std::floor(limit / each.secondsPerMicroBatch * (1 + 1e-12)));
      if (most < 1) return false;
      sum += most;
    }
    return sum >= total;
  };
  return *std::partition_point(candidates.begin(), candidates.end(), [&](double limit) { return !enough(limit); });
}

std::vector<Replica> randomReplicas(std::mt19937& random, int replicas) {
  std::vector<double> seconds(static_cast<size_t>(replicas));
  for (double& each : seconds) each = std::uniform_real_distribution<>(0.5, 3)(random);
  return replicasWith(seconds);
}

TEST(MicroBatchSplit, IsAsGoodAsAnyUnderRandomRules) {
  std::mt19937 random(1);
  const auto upTo = [&](int most) { return static_cast<int>(random() % static_cast<unsigned>(most + 1)); };
  int possible = 0, impossible = 0;
  for (int round = 0; round < 3000; ++round) {
    auto replicas = randomReplicas(random, 1 + upTo(3));
    const SplitRules rules{.total = 1 + upTo(14), .multiple = 1 + upTo(2)};
    for (Replica& each : replicas) {
      each.fillSeconds = upTo(1) * std::uniform_real_distribution<>(0, 5)(random);
      each.least = upTo(3);
      if (upTo(1)) each.most = each.least + upTo(8);
    }
    double best = INFINITY;
    forEverySplit(replicas, rules,
                  [&](std::span<const int> split) { best = std::min(best, makespan(replicas, split)); });
    const auto split = splitMicroBatches(replicas, rules);
    ASSERT_EQ(static_cast<bool>(split), best < INFINITY) << round;
    ++(split ? possible : impossible);
    if (!split) continue;
    EXPECT_EQ(std::accumulate(split->begin(), split->end(), 0), rules.total);
    for (std::size_t i = 0; i < replicas.size(); ++i) {
      EXPECT_GE((*split)[i], replicas[i].least);
      EXPECT_LE((*split)[i], replicas[i].most);
      EXPECT_EQ((*split)[i] % rules.multiple, 0);
    }
    EXPECT_NEAR(makespan(replicas, *split), best, 1e-9);
  }
  EXPECT_GT(possible, 500);
  EXPECT_GT(impossible, 500);
}

TEST(MicroBatchSplit, ChangesTheFewestOfAllThatAreAsGood) {
  std::mt19937 random(2);
  for (int round = 0; round < 500; ++round) {
    auto replicas = randomReplicas(random, 4);
    // Times that are often alike: then many splits are equally good.
    for (Replica& each : replicas) each.secondsPerMicroBatch = 1 + std::floor(each.secondsPerMicroBatch) / 2;
    const SplitRules rules{.total = 12 + static_cast<int>(random() % 4)};
    const auto before = splitMicroBatches(randomReplicas(random, 4), rules);
    ASSERT_TRUE(before);
    for (std::size_t i = 0; i < replicas.size(); ++i) replicas[i].now = (*before)[i];
    const auto split = splitMicroBatches(replicas, rules);
    ASSERT_TRUE(split);
    int fewest = 99;
    forEverySplit(replicas, rules, [&](std::span<const int> other) {
      EXPECT_GE(makespan(replicas, other), makespan(replicas, *split) - 1e-12);
      if (makespan(replicas, other) <= makespan(replicas, *split))
        fewest = std::min(fewest, changedBy(replicas, other));
    });
    EXPECT_EQ(changedBy(replicas, *split), fewest);
  }
}

TEST(MicroBatchSplit, IsExactForManyReplicasToo) {
  std::mt19937 random(3);
  for (const int replicas : {16, 64, 512}) {
    const auto some = randomReplicas(random, replicas);
    const int total = 8 * replicas + 5;
    const auto split = splitMicroBatches(some, {.total = total});
    ASSERT_TRUE(split);
    EXPECT_NEAR(makespan(some, *split), byThreshold(some, total), 1e-9);
  }
}

TEST(MicroBatchSplit, GivesNobodyMoreThanASlowerOneCouldTakeBack) {
  // What makes greedy exact: the last micro-batch anyone got would not have been done sooner elsewhere.
  std::mt19937 random(4);
  for (int round = 0; round < 200; ++round) {
    const auto replicas = randomReplicas(random, 8);
    const auto split = splitMicroBatches(replicas, {.total = 64});
    ASSERT_TRUE(split);
    for (size_t i = 0; i < replicas.size(); ++i)
      for (size_t k = 0; k < replicas.size(); ++k) {
        if ((*split)[i] == 1) continue;
        EXPECT_LE(replicas[i].secondsPerMicroBatch * (*split)[i],
                  replicas[k].secondsPerMicroBatch * ((*split)[k] + 1) + 1e-12);
      }
  }
}

TEST(MicroBatchSplit, OfEqualReplicasIsEqualAndDeterministic) {
  for (int replicas = 1; replicas <= 9; ++replicas)
    for (int total = replicas; total < 40; ++total) {
      const auto split =
          splitMicroBatches(replicasWith(std::vector<double>(static_cast<size_t>(replicas), 0.1)), {.total = total});
      ASSERT_TRUE(split);
      EXPECT_EQ(*split, equalSplit(replicas, total));
    }
}

TEST(MicroBatchSplit, TakesWorkFromTheSlowReplica) {
  auto replicas = replicasWith({1, 1, 2, 1});
  EXPECT_THAT(*splitMicroBatches(replicas, {.total = 32}), ElementsAre(10, 9, 4, 9));
  // From an equal split the slow one keeps what makes nobody wait longer, and one of the others keeps all of it.
  for (Replica& each : replicas) each.now = 8;
  EXPECT_THAT(*splitMicroBatches(replicas, {.total = 32}), ElementsAre(10, 9, 5, 8));
  // An interleaved pipeline of four stages takes four at a time.
  EXPECT_THAT(*splitMicroBatches(replicas, {.total = 32, .multiple = 4}), ElementsAre(12, 8, 4, 8));
  // A pipeline that takes long to fill, for its other stages are slow, gets less of it.
  replicas = replicasWith({1, 1});
  replicas[1].fillSeconds = 4;
  EXPECT_THAT(*splitMicroBatches(replicas, {.total = 16}), ElementsAre(10, 6));
  // One whose memory is full takes no more.
  replicas[0].most = 8;
  EXPECT_THAT(*splitMicroBatches(replicas, {.total = 16}), ElementsAre(8, 8));
}

TEST(MicroBatchSplit, StaysAsItIsWhereItIsAsGoodAsAny) {
  auto replicas = replicasWith({1, 1, 1});
  for (std::size_t i = 0; i < 3; ++i) replicas[i].now = std::array{5, 6, 5}[i];
  EXPECT_THAT(*splitMicroBatches(replicas, {.total = 16}), ElementsAre(5, 6, 5));
}

TEST(MicroBatchSplit, NamesWhatIsWrong) {
  EXPECT_EQ(splitMicroBatches({}, {.total = 4}).error().code(), ErrorCode::invalidArgument);
  EXPECT_THAT(splitMicroBatches(replicasWith({1, 1, 1}), {.total = 2}).error().message(),
              HasSubstr("2 micro-batches cannot give each of 3 replicas what it must have, 3 in all"));
  for (const double bad : {0.0, -1.0, double{INFINITY}, std::nan("")})
    EXPECT_FALSE(splitMicroBatches(replicasWith({1, bad}), {.total = 8})) << bad;
  auto replicas = replicasWith({1, 1});
  EXPECT_THAT(splitMicroBatches(replicas, {.total = 9, .multiple = 2}).error().message(),
              HasSubstr("9 micro-batches are no multiple of 2"));
  EXPECT_FALSE(splitMicroBatches(replicas, {.total = 8, .multiple = 0}));
  replicas[1].most = 2;
  replicas[0].most = 3;
  EXPECT_THAT(splitMicroBatches(replicas, {.total = 8}).error().message(),
              HasSubstr("8 micro-batches do not fit: the 2 replicas take 5 at most"));
  replicas[0].least = 4;
  EXPECT_THAT(splitMicroBatches(replicas, {.total = 8}).error().message(),
              HasSubstr("replica 0 is to take 4 to 3 of 8 micro-batches"));
}

}  // namespace
}  // namespace falcon::rebalance
