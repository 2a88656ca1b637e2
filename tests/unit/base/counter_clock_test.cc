#include "base/counter_clock.h"

#include <gtest/gtest.h>

#include <thread>
#include <utility>

namespace falcon {
namespace {

/// A processor and its kernel, of whom all is as the test says.
struct Machine {
  static inline bool trusted;
  static inline std::uint64_t counter;
  static inline Nanoseconds time;
  static inline int readings;              ///< of the clock
  static inline Nanoseconds interruption;  ///< just before the clock is read the next time
  static inline Nanoseconds delay;         ///< just after that

  static void begin() {
    trusted = true;
    counter = 1'000'000'000;
    time = 500s;
    readings = 0;
    interruption = delay = 0s;
  }
  /// At 2.5 ticks a nanosecond.
  static void pass(Nanoseconds duration) {
    time += duration;
    counter += static_cast<std::uint64_t>(duration.count()) * 5 / 2;
  }

  static bool tellsTime() { return trusted; }
  static std::uint64_t ticks() { return counter; }
  static Nanoseconds now() {
    ++readings;
    pass(std::exchange(interruption, 0s));
    const Nanoseconds read = time;
    pass(std::exchange(delay, 0s));
    return read;
  }
};

class CounterClockTest : public testing::Test {
 protected:
  CounterClockTest() { Machine::begin(); }
  void learnThePace() {
    clock.now();
    Machine::pass(1ms);
    clock.now();
    Machine::readings = 0;
  }
  void expectRight(Nanoseconds tolerance = 1us) {
    const Nanoseconds told = clock.now();
    EXPECT_LE(told, Machine::time + tolerance);
    EXPECT_GE(told, Machine::time - tolerance);
  }
  CounterClock<Machine> clock;
};

TEST_F(CounterClockTest, TellsTheTimeOfTheClockAndSeldomReadsIt) {
  learnThePace();
  for (int i = 0; i < 10'000; ++i) {
    Machine::pass(1us);
    expectRight();
  }
  EXPECT_GE(Machine::readings, 9);
  EXPECT_LE(Machine::readings, 25);
}

TEST_F(CounterClockTest, ReadsTheClockEachTimeUntilItKnowsThePace) {
  for (int i = 0; i < 100; ++i) {
    Machine::pass(1us);
    EXPECT_EQ(clock.now(), Machine::time);
  }
  EXPECT_EQ(Machine::readings, 100);
}

TEST_F(CounterClockTest, ReadsTheClockEachTimeWhereTheCounterTellsNoTime) {
  Machine::trusted = false;
  learnThePace();
  for (int i = 0; i < 100; ++i) {
    Machine::pass(1us);
    EXPECT_EQ(clock.now(), Machine::time);
  }
  EXPECT_EQ(Machine::readings, 100);
}

TEST_F(CounterClockTest, FollowsAClockThatTheKernelCorrects) {
  learnThePace();
  for (int i = 0; i < 10'000; ++i) {
    Machine::pass(10us);
    if (i % 10 == 0) Machine::time += 50ns;  // 500 ppm, the most that it does
    expectRight(2us);
  }
}

TEST_F(CounterClockTest, IsRightAtOnceAfterALongPause) {
  learnThePace();
  Machine::pass(3600s);
  expectRight(0ns);
  for (int i = 0; i < 100; ++i) {
    Machine::pass(1us);
    expectRight();
  }
  EXPECT_EQ(Machine::readings, 1);
}

// The thread loses its processor between its looks at the counter and at the clock.
class InterruptedClock : public CounterClockTest, public testing::WithParamInterface<Nanoseconds> {
 protected:
  void expectRightFromHereOn() {
    for (int i = 0; i < 3'000; ++i) {
      Machine::pass(1us);
      expectRight();
    }
  }
};

TEST_P(InterruptedClock, IsRightWhereItWasTheFirstLook) {
  Machine::interruption = GetParam();
  expectRight();
  expectRightFromHereOn();
}

TEST_P(InterruptedClock, IsRightWhereThePaceWasToBeMeasured) {
  clock.now();
  Machine::pass(1ms);
  Machine::interruption = GetParam();
  expectRight();
  expectRightFromHereOn();
}

TEST_P(InterruptedClock, IsRightAfterALongPause) {
  learnThePace();
  Machine::pass(5s);
  Machine::interruption = GetParam();
  expectRight();
  expectRightFromHereOn();
}

INSTANTIATE_TEST_SUITE_P(For, InterruptedClock, testing::Values(20us, 900us, 4ms, 50ms, 2s));

// An interruption that is short against the pause before it, and long against what the clock is counted on for.
class InterruptedAfterAPause : public InterruptedClock {};

TEST_P(InterruptedAfterAPause, IsRight) {
  for (const Nanoseconds pause : {550'000ns, 1'000'000ns, 4'000'000ns, 90'000'000ns, 900'000'000ns})
    for (Nanoseconds* const when : {&Machine::interruption, &Machine::delay})
      for (const bool known : {false, true}) {
        SCOPED_TRACE(testing::Message() << pause.count() << " ns, " << (known ? "known" : "unknown") << " pace, "
                                        << (when == &Machine::delay ? "after" : "before") << " the clock is read");
        Machine::begin();
        clock = {};
        clock.now();
        if (known) learnThePace();
        Machine::pass(known ? pause + 500us : pause);  // for so long that the clock is read
        *when = GetParam();
        expectRight(GetParam());
        expectRightFromHereOn();
      }
}

INSTANTIATE_TEST_SUITE_P(For, InterruptedAfterAPause, testing::Values(200ns, 500ns, 900ns, 3us, 80us, 800us));

TEST_F(CounterClockTest, NeverGoesBack) {
  learnThePace();
  Nanoseconds before = clock.now();
  for (int i = 0; i < 10'000; ++i) {
    Machine::pass(700ns);
    if (i % 100 == 0) Machine::time -= 300ns;  // as far as its pace may have been wrong
    const Nanoseconds now = clock.now();
    EXPECT_GE(now, before);
    before = now;
  }
}

// A virtual machine that has moved: the counter jumps, either way, and the time does not.
TEST_F(CounterClockTest, SurvivesACounterThatJumps) {
  for (const double jump : {1e12, -9e8, 3e6, -3e6}) {
    Machine::begin();
    clock = {};
    learnThePace();
    Machine::counter += static_cast<std::uint64_t>(static_cast<std::int64_t>(jump));
    Machine::pass(10us);
    expectRight(0ns);
    for (int i = 0; i < 10'000; ++i) {
      Machine::pass(1us);
      expectRight();
    }
    EXPECT_LE(Machine::readings, 1'100) << jump;  // a millisecond of them, and then now and then
  }
}

TEST_F(CounterClockTest, SurvivesAMachineThatStoodStill) {
  learnThePace();
  for (int i = 0; i < 100'000; ++i) {
    if (i % 1'000 == 500) Machine::counter += 2'000'000'000;  // the counter went on
    Machine::pass(1us);
    clock.now();
  }
  for (int i = 0; i < 5'000; ++i) Machine::pass(1us), clock.now();
  Machine::readings = 0;
  for (int i = 0; i < 1'000; ++i) {
    Machine::pass(1us);
    expectRight();
  }
  EXPECT_LE(Machine::readings, 2) << "the pace is known again";
}

// This very machine, whatever tells the time here: between what its clock says before and after, but for the pace.
TEST(CounterClock, TellsThisMachinesTime) {
  CounterClock<> clock;
  const SystemClock& real = SystemClock::instance();
  const Nanoseconds begun = real.now();
  int looks = 0;
  for (; real.now() - begun < 100ms; ++looks) {
    const Nanoseconds before = real.now();
    const Nanoseconds told = clock.now();
    const Nanoseconds after = real.now();
    ASSERT_GE(told, before - 2us) << looks;
    ASSERT_LE(told, after + 2us) << looks;
    if (looks % 1'000 == 999) std::this_thread::sleep_for(1ms);
  }
  EXPECT_GT(looks, 0);
}

}  // namespace
}  // namespace falcon
