#include "instrument/processor_use.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <ctime>
#include <thread>

namespace falcon::instrument {
namespace {

TEST(ProcessorUse, ReadsTheHostsFirstLine) {
  const auto ticks = parseHostTicks("cpu  100 20 30 4000 50 6 7 80 9 1\ncpu0 1 2 3 4 5 6 7 8 9 1\n");
  ASSERT_TRUE(ticks);
  EXPECT_DOUBLE_EQ(ticks->busy, 100 + 20 + 30 + 6 + 7);
  EXPECT_DOUBLE_EQ(ticks->stolen, 80);
  for (const char* other : {"", "cpu", "cpu 1 2 3", "intr 1 2 3 4 5 6 7 8 9"})
    EXPECT_FALSE(parseHostTicks(other)) << other;
}

TEST(ProcessorUse, ReadsAProcessWhoseNameHasBracketsAndBlanks) {
  const auto ticks = parseProcessTicks("12 (a) (b) c) S 1 2 3 4 5 6 7 8 9 10 100 20 3 4 20 0 1 0 555 0 0\n");
  ASSERT_TRUE(ticks);
  EXPECT_DOUBLE_EQ(*ticks, 127);
  for (const char* other : {"", "12 (a", "12 (a) S 1 2 3"}) EXPECT_FALSE(parseProcessTicks(other)) << other;
}

TEST(ProcessorUse, IsInterpolatedBetweenReadingsAndUnknownBeyond) {
  ManualClock clock;
  ProcessorMeter meter(clock);
  meter.add({1s, 10, 100, 1});
  meter.add({2s, 11, 104, 1});
  meter.add({4s, 11, 106, 2});
  const auto use = meter.between(1500ms, 3s);
  ASSERT_TRUE(use);
  EXPECT_DOUBLE_EQ(use->processSeconds, 0.5);
  EXPECT_DOUBLE_EQ(use->busyCores, (105 - 102) / 1.5);
  EXPECT_DOUBLE_EQ(use->stolenCores, 0.5 / 1.5);
  EXPECT_FALSE(meter.between(500ms, 3s));
  EXPECT_DOUBLE_EQ(meter.between(3s, 5s)->busyCores, 1) << "as between the newest two";
  EXPECT_FALSE(meter.between(2s, 7s));
  EXPECT_FALSE(meter.between(3s, 3s));
}

TEST(ProcessorUse, NeverGoesBack) {
  ManualClock clock;
  ProcessorMeter meter(clock);
  meter.add({1s, 10, 100, 1});
  meter.add({2s, 8, 101, 1});  // a child is gone with what it had used
  EXPECT_DOUBLE_EQ(meter.between(1s, 2s)->processSeconds, 0);
}

void burn(Nanoseconds time) {
  const SystemClock clock;
  for (const Nanoseconds end = clock.now() + time; clock.now() < end;) continue;
}

TEST(ProcessorUse, CountsThisProcessAndWhatItHasStarted) {
  const SystemClock clock;
  ProcessorMeter meter(clock);
  int hold[2];
  ASSERT_EQ(pipe(hold), 0);
  const pid_t child = fork();
  if (child == 0) {
    ::close(hold[1]);
    std::thread([] {
      for (;;) burn(1s);
    }).detach();
    char byte;
    _exit(read(hold[0], &byte, 1) == 0 ? 0 : 1);  // burns until the parent closes the pipe
  }
  ::close(hold[0]);
  meter.tick();
  const Nanoseconds from = clock.now();
  // By the processor's time: how much of it we get in half a second is the machine's.
  for (const std::clock_t begun = std::clock(); std::clock() - begun < CLOCKS_PER_SEC / 4;) continue;
  const Nanoseconds to = clock.now();
  std::optional<ProcessorUse> use;
  for (int i = 0; i < 6000 && !use; ++i) {
    std::this_thread::sleep_for(10ms);
    meter.tick();
    use = meter.between(from, to);
  }
  ::close(hold[1]);
  EXPECT_EQ(waitpid(child, nullptr, 0), child);
  ASSERT_TRUE(use);
  EXPECT_GT(use->processSeconds, 0.1);
  // What a hypervisor takes away in the midst of it counts as the process's.
  EXPECT_GE((use->busyCores + use->stolenCores) * seconds(to - from) + 0.05, use->processSeconds - 0.05);
}

}  // namespace
}  // namespace falcon::instrument
