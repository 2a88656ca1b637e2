#include "transport/drop_log.h"

#include <gtest/gtest.h>

namespace falcon::transport {
namespace {

TEST(DropLog, LetsAFewThroughThenOneAtATimeAndCountsTheRest) {
  DropLog log;
  Nanoseconds now = 100s;
  for (int i = 0; i < DropLog::atOnce; ++i) EXPECT_EQ(log.pass(now), 0u);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(log.pass(now += 1ms), std::nullopt);
  EXPECT_EQ(log.pass(now += DropLog::refill), 1000u);
  EXPECT_EQ(log.pass(now), std::nullopt);
  EXPECT_EQ(log.pass(now += DropLog::refill), 1u);
}

TEST(DropLog, WritesNoMoreThanItMayWhateverCome) {
  DropLog log;
  int lines = 0;
  std::uint64_t held = 0;
  for (int i = 0; i < 100'000; ++i)
    if (const auto before = log.pass(i * 1ms)) {
      ++lines;
      held += *before;
    }
  const int due = static_cast<int>(100s / DropLog::refill);
  EXPECT_GE(lines, due);
  EXPECT_LE(lines, due + DropLog::atOnce);
  EXPECT_LE(lines + held, 100'000u);
}

TEST(DropLog, IsFullAgainAfterAQuietTime) {
  DropLog log;
  for (int i = 0; i < 100; ++i) log.pass(1s);
  EXPECT_TRUE(log.pass(1h));
  for (int i = 1; i < DropLog::atOnce; ++i) EXPECT_EQ(log.pass(1h), 0u);
  EXPECT_FALSE(log.pass(1h));
}

}  // namespace
}  // namespace falcon::transport
