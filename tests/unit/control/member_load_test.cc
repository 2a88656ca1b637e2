// What the monitor does and says when the application calls far too often.
#include <gtest/gtest.h>

#include "unit/control/a_member.h"

namespace falcon::control {
namespace {

struct MemberLoad : falcon::test::AMember {
  void call(std::uint64_t count, Nanoseconds interval) {
    CallRecord record;
    record.communicator = 5;
    record.count = count;
    record.sequence = calls++;
    record.enter = clock.now();
    clock.advance(interval);
    record.leave = clock.now();
    log->write(record);
  }
  /// The same call over and over for `span`, `interval` apart, with the monitor awake ten times a second.
  void callEvery(Nanoseconds interval, Nanoseconds span) {
    const Nanoseconds end = clock.now() + span;
    while (clock.now() < end) {
      const Nanoseconds wake = clock.now() + 100ms;
      while (clock.now() < wake) call(2, interval);
      tick();
    }
  }
  void tick() {
    member.tick();
    for (const Samples& said : bus.take<Samples>())
      samples.insert(samples.end(), said.samples.begin(), said.samples.end());
  }
  double shownMilliseconds() const { return static_cast<double>(log->header().iterationNanoseconds.load()) * 1e-6; }
  int judged() const {
    int count = 0;
    for (const Sample& sample : samples) count += !sample.disturbed && !sample.provisional;
    return count;
  }

  std::vector<Sample> samples;
  std::uint64_t calls = 0;
};

TEST_F(MemberLoad, AFastLoopIsReportedInBundles) {
  callEvery(100us, 10s);  // 10 000 calls a second, each an iteration
  EXPECT_GT(judged(), 200) << "it is followed";
  EXPECT_LE(samples.size(), 10s / IterationBundle::shortest);
  for (const Sample& sample : samples) EXPECT_NEAR(sample.seconds, 100e-6, 1e-9);
  EXPECT_GT(samples.back().index, 95'000);
}

TEST_F(MemberLoad, CallsBeyondTheBudgetAreMissedAndNothingIsJudged) {
  callEvery(2us, 10s);  // 500 000 calls a second
  EXPECT_EQ(judged(), 0);
  const auto most = static_cast<std::size_t>(10 * ReadBudget::callsPerSecond * 2e-6 / 20e-3 + 100);
  EXPECT_LE(samples.size(), most);

  samples.clear();
  callEvery(1ms, 10s);  // the same calls at a bearable rate
  EXPECT_GT(judged(), 200) << "it is followed again";
}

TEST_F(MemberLoad, ABurstThatFitsTheLogIsReadInFull) {
  callEvery(1ms, 5s);
  for (int burst = 0; burst < 10; ++burst) {
    callEvery(10us, 100ms);  // 10 000 calls at once
    callEvery(1ms, 1s);
  }
  // Some 11 000 calls in every 1.1 s: below the budget on average, so none was missed.
  EXPECT_FALSE(samples.empty());
  for (const Sample& sample : samples) EXPECT_FALSE(sample.disturbed);
}

// Calls whose size differs every time have no period; among them some that are equal are no iterations.
TEST_F(MemberLoad, ShowsNoIterationTimeWhereNoPeriodIsKnown) {
  for (int iteration = 0; iteration < 1000; ++iteration) {
    for (int i = 0; i < 20; ++i) call(2, 1us);
    call(100 + calls, 100ms);
    tick();
    ASSERT_EQ(shownMilliseconds(), 0) << iteration;
  }
  EXPECT_EQ(log->header().iterations.load(), 0);
}

// A loop of 300 equal steps and one that is not: until that came again, a step looks like an iteration.
TEST_F(MemberLoad, DoesNotCountTheTurnsOfAnInnerLoop) {
  constexpr int iterations = 20;
  for (int iteration = 0; iteration < iterations; ++iteration) {
    for (int i = 0; i < 300; ++i) call(2, 1ms);
    call(100, 10ms);
    tick();
  }
  EXPECT_GT(log->header().iterations.load(), iterations / 2);
  EXPECT_LE(log->header().iterations.load(), iterations);
  EXPECT_EQ(samples.back().index + 1, log->header().iterations.load());
}

TEST_F(MemberLoad, ShowsNoIterationTimeAnyMoreWhereThePeriodIsLost) {
  callEvery(10ms, 5s);
  EXPECT_NEAR(shownMilliseconds(), 10, 1e-6);
  EXPECT_GT(log->header().iterations.load(), 300);
  for (int i = 0; i < 500; ++i) {
    call(100 + calls, 10ms);
    tick();
  }
  EXPECT_EQ(shownMilliseconds(), 0);
}

TEST(ReadBudget, IsTheAverageWhateverTheWakes) {
  for (const auto wake : {Nanoseconds(1ms), Nanoseconds(100ms), Nanoseconds(3s)}) {
    ReadBudget budget;
    std::size_t read = 0;
    for (Nanoseconds now{0}; now < 60s; now += wake) {
      const std::size_t allowed = budget.allowed(now);
      budget.spent(allowed);
      read += allowed;
    }
    EXPECT_LE(static_cast<double>(read), 60 * ReadBudget::callsPerSecond + ReadBudget::burst);
    EXPECT_GE(static_cast<double>(read), wake < 1s ? 59 * ReadBudget::callsPerSecond : 1.0);
  }
}

TEST(IterationBundle, LongIterationsPassAsTheyAre) {
  IterationBundle bundle;
  const Sample sample{.index = 4, .seconds = 0.3, .outside = 0.2, .communicators = {{7, 0.1, 12}}};
  const auto passed = bundle.add(sample);
  ASSERT_TRUE(passed);
  EXPECT_EQ(passed->index, 4);
  EXPECT_EQ(passed->seconds, 0.3);
  EXPECT_EQ(passed->outside, 0.2);
  EXPECT_EQ(passed->communicators[0].calls, 12u);
}

TEST(IterationBundle, ShortOnesBecomeTheirMean) {
  IterationBundle bundle;
  EXPECT_FALSE(bundle.add({.index = 1, .seconds = 0.006, .outside = 0.002, .communicators = {{7, 0.004, 10}}}));
  EXPECT_FALSE(
      bundle.add({.index = 2, .seconds = 0.008, .outside = 0.004, .communicators = {{7, 0.002, 10}, {8, 0.002, 3}}}));
  const auto mean = bundle.add({.index = 3, .seconds = 0.007, .outside = 0.003, .communicators = {{7, 0.003, 10}}});
  ASSERT_TRUE(mean);
  EXPECT_EQ(mean->index, 3);
  EXPECT_NEAR(mean->seconds, 0.007, 1e-12);
  EXPECT_NEAR(mean->outside, 0.003, 1e-12);
  ASSERT_EQ(mean->communicators.size(), 2u);
  EXPECT_NEAR(mean->communicators[0].seconds, 0.003, 1e-12);
  EXPECT_EQ(mean->communicators[0].calls, 10u);
  EXPECT_EQ(mean->communicators[1].calls, 1u);
}

TEST(IterationBundle, DisturbedOnesAreNotMixedWithOthers) {
  IterationBundle bundle;
  EXPECT_FALSE(bundle.add({.seconds = 0.015, .disturbed = true}));
  EXPECT_FALSE(bundle.add({.seconds = 0.015}));
  const auto mean = bundle.add({.seconds = 0.017});
  ASSERT_TRUE(mean);
  EXPECT_FALSE(mean->disturbed);
  EXPECT_NEAR(mean->seconds, 0.016, 1e-12);
}

}  // namespace
}  // namespace falcon::control
