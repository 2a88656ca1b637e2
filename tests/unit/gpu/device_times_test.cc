// Whose launches are timed on the device, and what comes of it where the driver refuses.
#include "gpu/device_times.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

namespace falcon::gpu {
namespace {

/// Moves on by a microsecond whenever it is asked, so that nobody waits for ever.
class Ticking final : public Clock {
 public:
  Nanoseconds now() const override { return time_ += 1us; }
  void sleep(Nanoseconds time) override { time_ += time; }

 private:
  mutable Nanoseconds time_{1s};
};

/// A device whose clock is `ahead` of the host's. Streams are any pointers, of the context that `contextOf` says.
class Device final : public StreamEvents {
 public:
  explicit Device(const Clock& clock) : clock_(clock) {}

  void* record(void* stream, void* event, Kind kind) const override {
    if (captured.contains(stream) || refuses) {
      if (event) free(event);
      return nullptr;
    }
    EXPECT_EQ(kind, Kind::timed);
    if (!event) event = reinterpret_cast<void*>(++made_);
    alive.insert(event);
    streamOf_[event] = stream;
    Nanoseconds reached = clock_.now();
    if (othersShare > 0ns) reached += othersShare - reached % othersShare;
    times_[event] = reached + ahead;
    return event;
  }
  bool isDone(void* event) const override {
    return !busy.contains(streamOf_.at(event)) && clock_.now() + ahead >= times_.at(event);
  }
  void free(void* event) const override { EXPECT_EQ(alive.erase(event), 1u); }
  std::optional<Nanoseconds> between(void* first, void* second) const override {
    if (forgets) return std::nullopt;
    EXPECT_EQ(contextOf(streamOf_.at(first)), contextOf(streamOf_.at(second)));
    return times_.at(second) - times_.at(first);
  }
  void* contextOf(void* stream) const override {
    return reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(stream) / 0x1000);
  }
  void* makeStream(void* context) const override {
    return refuses ? nullptr : reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(context) * 0x1000 + 0xfff);
  }

  Nanoseconds ahead{5s};
  Nanoseconds othersShare{0};  ///< another process has the device for so long, and again at once when we are idle
  bool refuses = false, forgets = false;
  std::set<void*> captured, busy;  ///< streams
  mutable std::set<void*> alive;   ///< events

 private:
  const Clock& clock_;
  mutable std::map<void*, void*> streamOf_;
  mutable std::map<void*, Nanoseconds> times_;
  mutable std::uintptr_t made_ = 0;
};

class Driver final : public CudaDriver {
 public:
  explicit Driver(const StreamEvents* events) : events_(events) {}
  int deviceCount() const override { return 1; }
  MemoryKind memoryOf(const void*) const override { return MemoryKind::device; }
  void* currentContext() const override { return nullptr; }
  void makeCurrent(void*) const override {}
  bool useDevice(int) const override { return true; }
  const StreamEvents* streamEvents() const override { return events_; }

 private:
  const StreamEvents* events_;
};

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
  Device device_{clock_};
  DeviceTimes times_{[this] { return std::make_shared<Driver>(&device_); }, clock_};
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

TEST_F(DeviceTimesTest, AreBounded) {
  times_.enable(true);
  for (std::size_t i = 0; i < DeviceTimes::mostOpen + 10; ++i) launch(stream(1), 7);
  EXPECT_EQ(times_.take().size(), DeviceTimes::mostOpen);
  EXPECT_EQ(device_.alive.size(), 2 * DeviceTimes::mostOpen);
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

TEST_F(DeviceTimesTest, AreAsExactAsIsWanted) {
  device_.othersShare = 40ms;
  times_.enable(true);
  launch(stream(1), 7);
  clock_.sleep(100ms);
  EXPECT_TRUE(times_.take().empty());
  launch(stream(1), 7);
  clock_.sleep(100ms);
  EXPECT_EQ(times_.take(30ms).size(), 1u);
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
