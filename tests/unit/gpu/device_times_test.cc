// Whose launches are timed on the device, and what comes of it where the driver refuses.
#include "gpu/device_times.h"

#include <gtest/gtest.h>

#include <set>
#include <thread>

#include "harness/timed_device.h"

namespace falcon::gpu {
namespace {

using test::DriverOf;
using test::Ticking;
using test::TimedDevice;

class DeviceTimesTest : public testing::Test {
 protected:
  static void* stream(std::uintptr_t number, std::uintptr_t context = 1) {
    return reinterpret_cast<void*>(context * 0x1000 + number);
  }
  /// A launch of one call that takes a millisecond; when it was entered.
  Nanoseconds launch(void* on, CommunicatorId communicator) {
    TimedLaunch launch;
    const Nanoseconds entered = clock_.now();
    times_.before(launch, on, communicator);
    clock_.sleep(1ms);
    times_.behind(launch, entered);
    return entered;
  }

  Ticking clock_;
  TimedDevice device_{clock_};
  DeviceTimes times_{[this] { return std::make_shared<DriverOf>(&device_); }, clock_};
};

TEST_F(DeviceTimesTest, AreOfTheHostsClock) {
  times_.enable(true);
  std::vector<Nanoseconds> entered;
  for (int i = 0; i < 3; ++i) entered.push_back(launch(stream(1), 7));
  clock_.sleep(20ms);
  const auto taken = times_.take();
  ASSERT_EQ(taken.size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(taken[i].communicator, 7u);
    EXPECT_EQ(taken[i].entered, entered[i]);
    EXPECT_NEAR((taken[i].reached - entered[i]).count(), 0, 50'000);
    EXPECT_NEAR((taken[i].done - taken[i].reached).count(), 1'000'000, 50'000);
  }
  EXPECT_TRUE(times_.take().empty());
}

TEST_F(DeviceTimesTest, CostNothingUnlessTheyAreEnabled) {
  launch(stream(1), 7);
  EXPECT_TRUE(device_.alive.empty());
  EXPECT_TRUE(times_.take().empty());
}

TEST_F(DeviceTimesTest, OfAGroupAreThoseOfEachStreamForAllWhoAreOnIt) {
  times_.enable(true);
  TimedLaunch launch;
  times_.before(launch, stream(1), 7);
  times_.before(launch, stream(2), 7);
  times_.before(launch, stream(1), 8);
  times_.before(launch, stream(1), 7);
  times_.behind(launch, clock_.now());
  EXPECT_TRUE(launch.streams.empty());
  std::multiset<CommunicatorId> communicators;
  for (const DeviceTime& each : times_.take()) communicators.insert(each.communicator);
  EXPECT_EQ(communicators, (std::multiset<CommunicatorId>{7, 7, 8}));
}

TEST_F(DeviceTimesTest, OfWhatIsNotDoneComeLater) {
  times_.enable(true);
  device_.busy.insert(stream(1));
  launch(stream(1), 7);
  launch(stream(2), 8);
  ASSERT_EQ(times_.take().size(), 1u);
  times_.enable(false);
  device_.busy.clear();
  ASSERT_EQ(times_.take().size(), 1u);
}

TEST_F(DeviceTimesTest, OfSeveralContextsEachHaveTheirOwnClock) {
  times_.enable(true);
  launch(stream(1, 1), 7);
  launch(stream(1, 2), 8);
  EXPECT_EQ(times_.take().size(), 2u);
}

TEST_F(DeviceTimesTest, UseTheirEventsAgain) {
  times_.enable(true);
  for (int round = 0; round < 10; ++round) {
    for (int i = 0; i < 5; ++i) launch(stream(1), 7);
    EXPECT_EQ(times_.take().size(), 5u);
  }
  EXPECT_EQ(device_.alive.size(), 10u);
}

TEST_F(DeviceTimesTest, AreThoseOfTheNewestLaunches) {
  times_.enable(true);
  Nanoseconds last{0};
  for (std::size_t i = 0; i < DeviceTimes::mostOpen + 10; ++i) last = launch(stream(1), 7);
  const auto taken = times_.take();
  ASSERT_EQ(taken.size(), DeviceTimes::mostOpen);
  EXPECT_EQ(taken.back().entered, last);
  EXPECT_LE(device_.alive.size(), 2 * DeviceTimes::mostOpen + 2);
}

TEST_F(DeviceTimesTest, TellHowManyAreUnderWay) {
  EXPECT_EQ(times_.underWay(), 0u);
  times_.enable(true);
  device_.busy.insert(stream(1));
  for (const int each : {1, 1, 2}) launch(stream(each), 7);
  EXPECT_EQ(times_.underWay(), 2u);
  device_.busy.clear();
  EXPECT_EQ(times_.underWay(), 0u);
  EXPECT_EQ(times_.take().size(), 3u);
}

// One thread's launch waits for its device, which waits for what another thread is about to launch.
TEST_F(DeviceTimesTest, NobodyWaitsForAnothersLaunch) {
  times_.enable(true);
  device_.heldUp = stream(1);
  std::thread waits([&] { launch(stream(1), 7); });
  while (!device_.isHoldingUp()) std::this_thread::yield();
  std::thread other([&] {
    launch(stream(1, 2), 8);
    EXPECT_EQ(times_.underWay(), 0u);
    device_.letGo();
  });
  other.join();
  waits.join();
  EXPECT_EQ(times_.take().size(), 2u);
}

TEST_F(DeviceTimesTest, OfACapturedStreamAreNone) {
  times_.enable(true);
  device_.captured.insert(stream(1));
  launch(stream(1), 7);
  // And where the capture begins within the call.
  TimedLaunch half;
  times_.before(half, stream(2), 7);
  device_.captured.insert(stream(2));
  times_.behind(half, clock_.now());
  EXPECT_TRUE(times_.take().empty());
  EXPECT_TRUE(device_.alive.empty());
}

TEST_F(DeviceTimesTest, AreNoneWhereTheDriverRefusesOrForgets) {
  times_.enable(true);
  launch(stream(1), 7);
  device_.refuses = true;
  EXPECT_TRUE(times_.take().empty());
  device_.refuses = false;
  launch(stream(1, 2), 7);
  device_.forgets = true;
  EXPECT_TRUE(times_.take().empty());
}

TEST_F(DeviceTimesTest, AreNoneWhereAnotherHasTheDevice) {
  times_.enable(true);
  launch(stream(1), 7);
  device_.busy.insert(stream(0xfff));  // our own
  EXPECT_TRUE(times_.take().empty());
  EXPECT_EQ(device_.alive.size(), 2u) << "spare ones only";
}

// Each event of ours is behind one of the other's shares: off by up to 3 ms when one is taken for the truth.
TEST_F(DeviceTimesTest, AreRightWhereAnotherProcessHasTheDeviceMostOfTheTime) {
  device_.othersShare = 3ms;
  times_.enable(true);
  const Nanoseconds entered = launch(stream(1), 7);
  clock_.sleep(20ms);
  const auto taken = times_.take();
  ASSERT_EQ(taken.size(), 1u);
  const Nanoseconds reached = entered + 3ms - entered % 3ms;
  EXPECT_NEAR(static_cast<double>((taken[0].reached - reached).count()), 0, 500'000);
}

TEST_F(DeviceTimesTest, AreAsExactAsIsWantedOrSayThatTheyAreNot) {
  device_.othersShare = 40ms;
  times_.enable(true);
  std::vector<DeviceTime> taken;
  for (const Nanoseconds wanted : {500us, 30'000us}) {
    launch(stream(1), 7);
    clock_.sleep(100ms);
    const auto more = times_.take(wanted);
    taken.insert(taken.end(), more.begin(), more.end());
  }
  ASSERT_EQ(taken.size(), 2u);
  EXPECT_FALSE(taken[0].onHostsClock);
  EXPECT_TRUE(taken[1].onHostsClock);
  // How long a launch took is right all the same: both had to wait for the same share.
  for (const DeviceTime& each : taken) EXPECT_EQ((each.done - each.reached) % 40ms, 0ns);
  EXPECT_LE(device_.alive.size(), 4u) << "events are left behind";
}

TEST(DeviceTimes, AreNoneWithoutADriver) {
  DeviceTimes times([] { return nullptr; }, SystemClock::instance());
  times.enable(true);
  TimedLaunch launch;
  times.before(launch, nullptr, 7);
  times.behind(launch, 1s);
  EXPECT_TRUE(times.take().empty());
}

}  // namespace
}  // namespace falcon::gpu
