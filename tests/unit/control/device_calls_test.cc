// Which calls of a profile get the times of the device.
#include "control/device_calls.h"

#include <gtest/gtest.h>

namespace falcon::control {
namespace {

TimedCall call(CommunicatorId communicator, std::int64_t enter, std::int64_t duration) {
  return {.communicator = communicator, .enter = enter, .duration = duration};
}

gpu::DeviceTime timed(CommunicatorId communicator, int entered, int reached, int done) {
  return {communicator, Nanoseconds(entered), Nanoseconds(reached), Nanoseconds(done)};
}

TEST(DeviceCalls, HaveTheTimesOfTheDevice) {
  const auto calls =
      asOnDevice({call(1, 100, 5), call(1, 200, 5)}, {1}, {timed(1, 203, 500, 520), timed(1, 100, 300, 450)}).calls;
  ASSERT_EQ(calls.size(), 2u);
  EXPECT_EQ(calls[0].enter, 300);
  EXPECT_EQ(calls[0].duration, 150);
  EXPECT_EQ(calls[1].enter, 500);
  EXPECT_EQ(calls[1].duration, 20);
}

TEST(DeviceCalls, SpanAllStreamsOfAGroup) {
  const auto calls = asOnDevice({call(1, 100, 5)}, {1}, {timed(1, 102, 300, 450), timed(1, 102, 280, 400)}).calls;
  ASSERT_EQ(calls.size(), 1u);
  EXPECT_EQ(calls[0].enter, 280);
  EXPECT_EQ(calls[0].duration, 170);
}

TEST(DeviceCalls, OfTheVendorsThatWereNotTimedAreLeftOut) {
  const auto calls = asOnDevice({call(1, 100, 5), call(2, 110, 5), call(1, 200, 5)}, {1},
                                {timed(1, 200, 250, 260), timed(2, 300, 310, 320)})
                         .calls;
  ASSERT_EQ(calls.size(), 2u);
  EXPECT_EQ(calls[0].communicator, 2u) << "the host engine's stay as they are";
  EXPECT_EQ(calls[0].enter, 110);
  EXPECT_EQ(calls[1].enter, 250);
}

TEST(DeviceCalls, AreInTheOrderOfTheDevice) {
  // Launched in this order on two streams, of which the first had to wait.
  const auto calls =
      asOnDevice({call(1, 100, 5), call(2, 110, 5)}, {1, 2}, {timed(1, 101, 900, 950), timed(2, 111, 300, 310)}).calls;
  ASSERT_EQ(calls.size(), 2u);
  EXPECT_EQ(calls[0].communicator, 2u);
  EXPECT_EQ(calls[1].communicator, 1u);
}

TEST(DeviceCalls, ThatAreNotOnTheHostsClockSaySoAndAreNotPutBesideOthers) {
  auto off = timed(1, 100, 300, 450);
  off.onHostsClock = false;
  const auto alone = asOnDevice({call(1, 100, 5)}, {1}, {off});
  EXPECT_EQ(alone.calls.size(), 1u);
  EXPECT_FALSE(alone.onHostsClock);
  const auto beside = asOnDevice({call(1, 100, 5), call(2, 110, 5)}, {1}, {off});
  ASSERT_EQ(beside.calls.size(), 1u);
  EXPECT_EQ(beside.calls[0].communicator, 2u);
  EXPECT_TRUE(beside.onHostsClock);
}

}  // namespace
}  // namespace falcon::control
