#include "control/plan_book.h"

#include <gtest/gtest.h>

#include <future>
#include <numeric>

namespace falcon::control {
namespace {

RegisteredPart layoutOf(int replicas, int index, int microBatches) {
  RegisteredPart layout;
  layout.dataParallelSize = replicas;
  layout.dataParallelIndex = index;
  layout.microBatches = microBatches;
  return layout;
}

constexpr PlannedRank myself{7, 0};

TEST(EqualSplit, CoversEveryMicroBatchOnce) {
  for (int replicas = 1; replicas <= 9; ++replicas) {
    for (int total = replicas; total <= 40; ++total) {
      int next = 0;
      double weight = 0;
      for (int index = 0; index < replicas; ++index) {
        const IterationPlan plan = equalSplit(layoutOf(replicas, index, total));
        EXPECT_EQ(plan.firstMicroBatch, next);
        EXPECT_GE(plan.microBatches, 1);
        next += plan.microBatches;
        weight += plan.gradientWeight;
      }
      EXPECT_EQ(next, total);
      EXPECT_NEAR(weight, 1, 1e-12);
    }
  }
}

TEST(PlanBook, KeepsToMultiples) {
  PlanBook book;
  RegisteredPart layout = layoutOf(2, 0, 16);
  layout.limits.multiple = 4;
  EXPECT_EQ(equalSplit(layout).microBatches, 8);
  book.setPart(myself, layout);
  EXPECT_FALSE(book.propose(1, 5, {10, 6}));
  EXPECT_TRUE(book.propose(2, 5, {12, 4}));
}

TEST(PlanBook, ASplitHoldsFromItsIterationOn) {
  PlanBook book;
  book.setPart(myself, layoutOf(2, 1, 8));
  EXPECT_EQ(book.begin(myself, 0)->microBatches, 4);
  ASSERT_TRUE(book.propose(5, 3, {6, 2}));
  EXPECT_EQ(book.begin(myself, 1)->microBatches, 4);
  book.decide(5, true);
  EXPECT_EQ(book.begin(myself, 2)->microBatches, 4);
  const auto plan = book.begin(myself, 3);
  EXPECT_EQ(plan->microBatches, 2);
  EXPECT_EQ(plan->firstMicroBatch, 6);
  EXPECT_DOUBLE_EQ(plan->gradientWeight, 0.25);
  EXPECT_EQ(plan->version, 5u);
}

TEST(PlanBook, RefusesWhatDoesNotFit) {
  PlanBook book;
  EXPECT_FALSE(book.propose(1, 0, {1}));  // no layout
  EXPECT_FALSE(book.begin(myself, 0));
  book.setPart(myself, layoutOf(2, 0, 8));
  ASSERT_TRUE(book.begin(myself, 4));
  EXPECT_FALSE(book.propose(1, 4, {4, 4}));  // that iteration has begun
  EXPECT_FALSE(book.propose(1, 9, {8, 0}));  // every replica computes at least one
  EXPECT_FALSE(book.propose(1, 9, {4, 3}));  // one is lost
  EXPECT_FALSE(book.propose(1, 9, {4, 2, 2}));
  EXPECT_TRUE(book.propose(1, 9, {5, 3}));
  EXPECT_FALSE(book.propose(2, 9, {5, 3}));  // one is undecided
}

// Ranks that are threads of one process.
TEST(PlanBook, EveryRankOfAProcessGetsThePlanOfItsOwnLayout) {
  PlanBook book;
  constexpr int replicas = 3, total = 8;
  for (int index = 0; index < replicas; ++index)
    EXPECT_EQ(book.setPart({7, index}, layoutOf(replicas, index, total)), index == 0);
  int next = 0;
  for (int index = 0; index < replicas; ++index) {
    const auto plan = book.begin({7, index}, 0);
    ASSERT_TRUE(plan);
    EXPECT_EQ(plan->firstMicroBatch, next);
    next += plan->microBatches;
  }
  EXPECT_EQ(next, total);
  EXPECT_FALSE(book.begin({7, 3}, 0)) << "it registered nothing";
  EXPECT_FALSE(book.begin({8, 0}, 0));

  EXPECT_FALSE(book.propose(1, 9, {2, 3, 3}));
  EXPECT_EQ(book.currentMicroBatches(), 0);
  book.forget({7, 0});
  book.forget({7, 1});
  EXPECT_TRUE(book.propose(1, 9, {2, 3, 3})) << "one rank is left";
  EXPECT_EQ(book.currentMicroBatches(), 2);
}

TEST(PlanBook, ARankMayRegisterThroughTwoCommunicators) {
  PlanBook book;
  EXPECT_TRUE(book.setPart({7, 1}, layoutOf(2, 1, 8)));
  EXPECT_TRUE(book.setPart({8, 1}, layoutOf(2, 1, 8)));
  ASSERT_TRUE(book.propose(1, 2, {6, 2}));
  book.decide(1, true);
  EXPECT_EQ(book.begin({8, 1}, 2)->microBatches, 2);
  EXPECT_EQ(book.begin({7, 1}, 2)->microBatches, 2);
}

TEST(PlanBook, WaitsForTheDecisionAtItsIterationOnly) {
  PlanBook book;
  book.setPart(myself, layoutOf(2, 0, 8));
  ASSERT_TRUE(book.propose(1, 2, {6, 2}));
  ASSERT_TRUE(book.begin(myself, 1));
  auto waiting = std::async(std::launch::async, [&] { return book.begin(myself, 2)->microBatches; });
  EXPECT_EQ(waiting.wait_for(std::chrono::milliseconds(50)), std::future_status::timeout);
  book.decide(1, false);
  EXPECT_EQ(waiting.get(), 4);
}

}  // namespace
}  // namespace falcon::control
