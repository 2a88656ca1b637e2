#include "collectives/time_estimate.h"

#include <gtest/gtest.h>

namespace falcon::collectives {
namespace {

Call callOf(Operation operation, std::size_t count, Rank peer = -1) {
  return {operation, DataType::f32, ReduceOp::sum, nullptr, nullptr, count, peer};
}

class TimeEstimate : public testing::TestWithParam<Operation> {};

TEST_P(TimeEstimate, GrowsWithTheBytesTheRanksAndTheSlownessOfTheLinks) {
  const Operation operation = GetParam();
  for (const int ranks : {1, 2, 3, 8, 100}) {
    double before = 0;
    for (std::size_t count = 0; count < std::size_t{1} << 34; count = count * 4 + 1) {
      const Call call = callOf(operation, count, 0);
      const double now = estimatedMicroseconds({ranks, true}, call);
      EXPECT_GT(now, 0);
      EXPECT_GE(now, before);
      EXPECT_GE(estimatedMicroseconds({ranks, false}, call), now);
      before = now;
    }
  }
}

// What passes the busiest link of a large call, in units of the message.
TEST_P(TimeEstimate, LargeCallsCostWhatTheirTrafficCosts) {
  const Operation operation = GetParam();
  constexpr std::size_t count = std::size_t{1} << 28;
  const double unit = estimatedMicroseconds({2, true}, callOf(Operation::send, count, 1));
  double traffic = 1;
  if (operation == Operation::allReduce) traffic = 2 * 7.0 / 8;
  if (operation == Operation::allGather || operation == Operation::reduceScatter || operation == Operation::allToAll ||
      operation == Operation::gather || operation == Operation::scatter)
    traffic = 7;
  EXPECT_NEAR(estimatedMicroseconds({8, true}, callOf(operation, count, 0)) / unit, traffic, 0.01 * traffic);
}

INSTANTIATE_TEST_SUITE_P(Operations, TimeEstimate,
                         testing::Values(Operation::broadcast, Operation::reduce, Operation::allGather,
                                         Operation::reduceScatter, Operation::allReduce, Operation::send,
                                         Operation::receive, Operation::allToAll, Operation::gather,
                                         Operation::scatter),
                         [](const auto& kind) { return nameOf(kind.param); });

}  // namespace
}  // namespace falcon::collectives
