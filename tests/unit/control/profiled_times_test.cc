// What is left of an iteration when the calls of a profile are taken out.
#include "control/profiled_times.h"

#include <gtest/gtest.h>

namespace falcon::control {
namespace {

instrument::TimelineCall call(CommunicatorId communicator, Nanoseconds enter, Nanoseconds leave) {
  instrument::TimelineCall made;
  made.communicator = communicator;
  made.enter = enter;
  made.leave = leave;
  return made;
}

TEST(ProfiledTimes, AreOutsideOfAllCallsAndInEachCommunicator) {
  std::vector<instrument::TimelineCall> calls;
  for (int i = 0; i < 10; ++i) {
    const Nanoseconds begin = i * 100ms;
    calls.push_back(call(1, begin, begin + 20ms));
    calls.push_back(call(2, begin + 10ms, begin + 50ms));  // of another stream
    calls.push_back(call(1, begin + 15ms, begin + 18ms));  // within both
  }
  const auto times = profiledTimes(calls, 0.1);
  ASSERT_TRUE(times.has_value());
  EXPECT_NEAR(times->outside, 0.05, 1e-3);
  EXPECT_NEAR(times->inCalls.at(1), 0.023, 1e-3);
  EXPECT_NEAR(times->inCalls.at(2), 0.04, 1e-3);
  EXPECT_NEAR(times->calls, 3, 0.2);
}

TEST(ProfiledTimes, AreOfWholeIterations) {
  // What comes before them, a long call into them among it, does not count beyond their start.
  std::vector<instrument::TimelineCall> calls{call(1, 5ms, 10ms), call(1, 20ms, 130ms)};
  for (int i = 1; i <= 3; ++i) calls.push_back(call(1, i * 100ms + 80ms, i * 100ms + 100ms));
  const auto times = profiledTimes(calls, 0.1);  // from 100 to 400 ms
  ASSERT_TRUE(times.has_value());
  EXPECT_NEAR(times->inCalls.at(1), (0.03 + 3 * 0.02) / 3, 1e-9);
  EXPECT_NEAR(times->outside, 0.1 - 0.03, 1e-9);
  EXPECT_NEAR(times->calls, 1, 1e-9);
}

TEST(ProfiledTimes, AreNoneOfLessThanTwoIterations) {
  EXPECT_FALSE(profiledTimes({}, 0.1).has_value());
  EXPECT_FALSE(profiledTimes({call(1, 0ms, 10ms), call(1, 100ms, 110ms)}, 0.1).has_value());
  EXPECT_FALSE(profiledTimes({call(1, 0ms, 10ms), call(1, 900ms, 910ms)}, 0).has_value());
}

}  // namespace
}  // namespace falcon::control
