#include "control/told_work.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "control/iteration_bundle.h"

namespace falcon::control {
namespace {

Nanoseconds now() {
  return SystemClock::instance().now();
}

TEST(ToldWork, AddsUpInTheIterationThatItIsToldIn) {
  ASSERT_TRUE(ToldWork::tell(1000));  // before anybody reads
  WorkSums sums;
  const Nanoseconds start = now();
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([] {
      for (int k = 0; k < 100; ++k) ASSERT_TRUE(ToldWork::tell(2));
    });
  for (std::thread& thread : threads) thread.join();
  const Nanoseconds end = now();
  ASSERT_TRUE(ToldWork::tell(7));
  sums.read();
  EXPECT_EQ(sums.take(start, end), 800);
  EXPECT_EQ(sums.take(end, now()), 7);
  EXPECT_EQ(sums.take(now(), now()), 0) << "nothing was told";
}

TEST(ToldWork, IsNotKnownWhereSomeOfItWasOverwritten) {
  WorkSums sums;
  const Nanoseconds start = now();
  for (int i = 0; i < 5000; ++i) ASSERT_TRUE(ToldWork::tell(1));
  sums.read();
  const Nanoseconds end = now();
  EXPECT_EQ(sums.take(start, end), 0) << "a part of it would be taken for all";
  const Nanoseconds next = now();
  ASSERT_TRUE(ToldWork::tell(3));
  sums.read();
  EXPECT_EQ(sums.take(next, now()), 3);
}

TEST(ToldWork, OfShortIterationsIsTheirMean) {
  IterationBundle bundle;
  std::optional<Sample> sample;
  for (int i = 0; i < 10 && !sample; ++i) sample = bundle.add({.index = i, .seconds = 0.005, .work = 10.0 + i});
  ASSERT_TRUE(sample);
  EXPECT_DOUBLE_EQ(sample->work, 11.5);
}

}  // namespace
}  // namespace falcon::control
