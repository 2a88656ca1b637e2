#include "control/range_sums.h"

#include <gtest/gtest.h>

#include "control/decisions.h"
#include "control/iteration_bundle.h"

namespace falcon::control {
namespace {

TEST(RangeSums, CountARangeInTheIterationThatItEndsIn) {
  auto log = instrument::RangeLog::create("", 0);
  ASSERT_TRUE(log);
  RangeSums sums(log->get());
  const auto forward = (*log)->nameOf("forward"), data = (*log)->nameOf("data");
  (*log)->write({data, 0, 0ms, 1ms});  // before the first known iteration
  (*log)->write({forward, 0, 9ms, 12ms});
  (*log)->write({forward, 0, 13ms, 14ms});
  (*log)->write({data, 0, 19ms, 21ms});
  sums.read();
  const auto first = sums.take(10ms, 20ms);
  ASSERT_EQ(first.size(), 1u);
  EXPECT_EQ(first[0].name, "forward");
  EXPECT_NEAR(first[0].seconds, 0.004, 1e-9);
  EXPECT_EQ(first[0].times, 2u);
  const auto second = sums.take(20ms, 30ms);
  ASSERT_EQ(second.size(), 1u);
  EXPECT_EQ(second[0].name, "data");
  EXPECT_NEAR(second[0].seconds, 0.002, 1e-9);
  EXPECT_TRUE(sums.take(30ms, 40ms).empty());
}

TEST(RangeSums, WithoutALogAreNothing) {
  RangeSums sums(nullptr);
  sums.read();
  EXPECT_TRUE(sums.take(0ms, 1s).empty());
}

TEST(RangeSums, OfShortIterationsAreTheirMean) {
  IterationBundle bundle;
  std::optional<Sample> sample;
  for (int i = 0; i < 10 && !sample; ++i) {
    Sample iteration{.index = i, .seconds = 0.005};
    iteration.ranges = {{"forward", 0.002, 4}};
    if (i % 2 == 0) iteration.ranges.push_back({"checkpoint", 0.001, 1});
    sample = bundle.add(iteration);
  }
  ASSERT_TRUE(sample);
  ASSERT_EQ(sample->ranges.size(), 2u);
  EXPECT_NEAR(sample->ranges[0].seconds, 0.002, 1e-9);
  EXPECT_EQ(sample->ranges[0].times, 4u);
  EXPECT_NEAR(sample->ranges[1].seconds, 0.0005, 1e-9);
}

TEST(RangeGrowths, AreThoseOfCodeThatTakesLonger) {
  JobView job;
  job.handle(7, Introduce{.jobRank = 3});
  const auto iterate = [&](double forward, double data) {
    Sample sample{.seconds = 0.1};
    sample.ranges = {{"forward", forward, 1}, {"data", data, 1}};
    for (int i = 0; i < 4; ++i) job.handle(7, Samples{{sample}});
  };
  iterate(0.05, 0.01);
  job.members()[7].healthy = JobView::means(job.members()[7], 4);
  EXPECT_TRUE(rangeGrowths(job, 4).empty());
  iterate(0.051, 0.06);
  const auto growths = rangeGrowths(job, 4);
  ASSERT_EQ(growths.size(), 1u);
  EXPECT_EQ(growths[0].rank, 3);
  EXPECT_EQ(growths[0].name, "data");
  EXPECT_NEAR(growths[0].beforeMilliseconds, 10, 1e-9);
  EXPECT_NEAR(growths[0].afterMilliseconds, 60, 1e-9);
}

}  // namespace
}  // namespace falcon::control
