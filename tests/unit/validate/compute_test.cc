// The compute test: a right product, a score, what the kernel counted.
#include "validate/compute_test.h"

#include <gtest/gtest.h>

#include <cmath>

namespace falcon::validate {
namespace {

TEST(ProcessorStat, ReadsBothKindsOfCounters) {
  ProcessorStat stat;
  parseCpuStat("nr_periods 10\nnr_throttled 4\nthrottled_time 2500000\n", stat);
  EXPECT_EQ(stat.throttledPeriods, 4u);
  EXPECT_EQ(stat.throttled, Nanoseconds(2500000));
  parseCpuStat("usage_usec 1\nnr_throttled 5\nthrottled_usec 2600\n", stat);
  EXPECT_EQ(stat.throttled, Nanoseconds(2600000));
  parseSchedStat("123 456 7\n", stat);
  EXPECT_EQ(stat.runQueueWait, Nanoseconds(456));
  ProcessorStat nothing;
  parseCpuStat("nr_throttled x\nthrottled_time\n", nothing);
  parseSchedStat("12", nothing);
  EXPECT_FALSE(nothing.throttledPeriods || nothing.throttled || nothing.runQueueWait);
}

TEST(ProcessorStat, DifferencesAreUnknownWhereEitherIsOrTheCgroupChanged) {
  const ProcessorStat before{.throttledPeriods = 1, .throttled = 5ns, .runQueueWait = 7ns};
  const ProcessorStat after{.throttledPeriods = 3, .throttled = 2ns, .runQueueWait = {}};
  const auto difference = after - before;
  EXPECT_EQ(difference.throttledPeriods, 2u);
  EXPECT_FALSE(difference.throttled);
  EXPECT_FALSE(difference.runQueueWait);
}

TEST(ProcessorStat, StealIsTheMeanOverTheThreadsProcessors) {
  const char* text = "cpu  1 1 1 1 1 1 1 900 0 0\ncpu0 1 1 1 1 1 1 1 30 0 0\ncpu1 1 1 1 1 1 1 1 50 0 0\ncpu2 9 9\n";
  ProcessorStat stat;
  parseSteal(text, {0, 1}, 10ms, stat);
  EXPECT_EQ(stat.steal, Nanoseconds(400ms));
  parseSteal(text, {1}, 10ms, stat);
  EXPECT_EQ(stat.steal, Nanoseconds(500ms));
  ProcessorStat nothing;
  parseSteal(text, {2, 7}, 10ms, nothing);
  EXPECT_FALSE(nothing.steal);
}

TEST(ProcessorStat, AThreadMayRunSomewhere) {
  EXPECT_FALSE(allowedProcessors().empty());
}

template <class Number>
void expectRightProduct(const MatrixProduct& product, void (*multiply)(int, const Number*, const Number*, Number*)) {
  for (const int size : {1, 2, 7, 64}) {
    const auto count = static_cast<std::size_t>(size * size);
    std::vector<Number> a(count), b(count), c(count, Number(99));
    for (std::size_t i = 0; i < count; ++i)
      a[i] = static_cast<Number>(i % 5) - 2, b[i] = static_cast<Number>(i % 7) - 3;
    multiply(size, a.data(), b.data(), c.data());
    for (int row = 0; row < size; ++row)
      for (int column = 0; column < size; ++column) {
        Number sum = 0;
        for (int k = 0; k < size; ++k)
          sum += a[static_cast<std::size_t>(row * size + k)] * b[static_cast<std::size_t>(k * size + column)];
        EXPECT_NEAR(c[static_cast<std::size_t>(row * size + column)], sum, 1e-3) << product.name << " " << size;
      }
  }
}

void expectRightProduct(const MatrixProduct& product) {
  expectRightProduct(product, product.multiply);
  expectRightProduct(product, product.multiplyDouble);
}

TEST(MatrixProduct, OfThePlainLoopIsRight) {
  expectRightProduct(plainProduct());
}

TEST(MatrixProduct, OfTheProcessIsRight) {
  expectRightProduct(matrixProduct());
}

TEST(MatrixProduct, FallsBackWhereTheModuleCannotBeOpened) {
  const auto product = openProduct("/nowhere/libnccl_falcon_compute.so");
  EXPECT_EQ(product.name, plainProduct().name);
  expectRightProduct(product);
}

TEST(ComputeBenchmark, ScoresWorkPerWallTime) {
  const auto plain = plainProduct();
  for (const MatrixProduct* product : {static_cast<const MatrixProduct*>(nullptr), &plain}) {
    for (const auto precision : {Precision::f32, Precision::f64}) {
      const auto score = makeComputeBenchmark(SystemClock::instance(), product, {}, precision)->run(50ms);
      ASSERT_TRUE(score);
      EXPECT_GT(score->gigaflopsPerSecond, 0);
      EXPECT_GE(score->wall, 50ms);
      EXPECT_GT(score->processor, 0ns);
      EXPECT_LE(score->processor, score->wall + 5ms);
      EXPECT_EQ(score->product, product ? plain.name : matrixProduct().name);
    }
  }
}

// Work that stands still for three times as long as it computes scores a quarter, whatever processor time it took: what
// a quota does, without needing one.
TEST(ComputeBenchmark, TimeNotRunningLowersTheScore) {
  static ManualClock clock;
  static Nanoseconds standstill{0};
  const MatrixProduct halting{"halting", [](int, const float*, const float*, float* c) {
                                clock.advance(2ms + standstill);
                                c[0] = 1;
                              }};
  const auto benchmark = makeComputeBenchmark(clock, &halting);
  const auto whole = benchmark->run(96ms);
  standstill = 6ms;
  const auto part = benchmark->run(96ms);
  ASSERT_TRUE(whole && part);
  EXPECT_EQ(whole->wall, 96ms);
  EXPECT_EQ(part->wall, 96ms);
  EXPECT_DOUBLE_EQ(part->gigaflopsPerSecond, whole->gigaflopsPerSecond / 4);
}

TEST(ComputeBenchmark, CanBeStopped) {
  int asked = 0;
  const auto benchmark = makeComputeBenchmark(SystemClock::instance(), nullptr, [&] { return ++asked > 3; });
  EXPECT_FALSE(benchmark->run(1h));
}

}  // namespace
}  // namespace falcon::validate
