#include "transport/alarm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <vector>

namespace falcon::transport {
namespace {

std::shared_ptr<Reactor> reactorWithAlarm() {
  return *makeReactor(*SocketAddress::parse("127.0.0.1:0"));
}

std::ptrdiff_t descriptors() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), std::filesystem::directory_iterator());
}

/// What has rung.
class Rung {
 public:
  void note(int alarm) {
    const std::lock_guard lock(mutex_);
    order_.push_back(alarm);
    changed_.notify_all();
  }
  std::vector<int> wait(std::size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, 60s, [&] { return order_.size() >= count; });
    return order_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<int> order_;
};

TEST(Alarm, ManyTakeNoDescriptors) {
  const auto here = reactorWithAlarm();
  const auto before = descriptors();
  std::vector<std::unique_ptr<Alarm>> alarms;
  for (int i = 0; i < 1000; ++i) alarms.push_back(std::make_unique<Alarm>(here, [] {}));
  for (const auto& alarm : alarms) alarm->set(10min);
  EXPECT_EQ(descriptors(), before);
}

TEST(Alarm, RingInTheOrderOfTheirTimesAndOnceEach) {
  const auto here = reactorWithAlarm();
  Rung rung;
  std::vector<std::unique_ptr<Alarm>> alarms;
  for (int i = 0; i < 5; ++i) alarms.push_back(std::make_unique<Alarm>(here, [&rung, i] { rung.note(i); }));
  // On the thread that rings, so that none does meanwhile; again where that was held up for as long as they are apart.
  here->post([&] {
    const Clock& clock = SystemClock::instance();
    Nanoseconds begun;
    do {
      begun = clock.now();
      for (int i = 0; i < 5; ++i) alarms[static_cast<std::size_t>(i)]->set((5 - i) * 40ms);
      alarms[0]->set(1ms);    // in the place of the last
      alarms[3]->set(10min);  // not before this test is over
    } while (clock.now() - begun > 20ms);
  });
  EXPECT_THAT(rung.wait(4), testing::ElementsAre(0, 4, 2, 1));
  alarms[3]->set(1ms);
  alarms[0]->set(Nanoseconds(0));
  EXPECT_THAT(rung.wait(6), testing::UnorderedElementsAre(0, 4, 2, 1, 3, 0));
}

TEST(Alarm, MayBeSetAndEndedWhereItRings) {
  const auto here = reactorWithAlarm();
  Rung rung;
  std::unique_ptr<Alarm> alarm;
  int times = 0;
  alarm = std::make_unique<Alarm>(here, [&] {
    if (++times < 3) return alarm->set(1ms);
    alarm.reset();
    rung.note(times);
  });
  here->post([&] { alarm->set(1ms); });  // not still in there when it ends itself
  EXPECT_THAT(rung.wait(1), testing::ElementsAre(3));
}

TEST(Alarm, DoesNotRingWhenItIsGone) {
  const auto here = reactorWithAlarm();
  for (int round = 0; round < 200; ++round) {
    auto alive = std::make_unique<std::atomic<bool>>(true);
    auto alarm = std::make_unique<Alarm>(here, [flag = alive.get()] { EXPECT_TRUE(flag->load()); });
    alarm->set(std::chrono::microseconds(10 * (round % 20)));
    std::this_thread::sleep_for(std::chrono::microseconds(100));
    alarm.reset();
    alive->store(false);
  }
}

}  // namespace
}  // namespace falcon::transport
