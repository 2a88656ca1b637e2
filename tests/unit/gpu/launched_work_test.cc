// Which streams are asked for, and when what was launched on them counts as done.
#include "gpu/launched_work.h"

#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <thread>

#include "harness/timed_device.h"

namespace falcon::gpu {
namespace {

/// Events are numbers from 1 on, as pointers. Streams are any pointers.
class FakeEvents final : public StreamEvents {
 public:
  void* record(void* stream, void* event, Kind) const override {
    recorded.insert(stream);
    if (stream == heldUp) {
      holdingUp = true;
      while (!letGo) std::this_thread::yield();
    }
    if (capturing.contains(stream)) {
      if (event) free(event);
      return nullptr;
    }
    if (!event) event = reinterpret_cast<void*>(++made);
    alive.insert(event);
    streamOf[event] = stream;
    return event;
  }
  bool isDone(void* event) const override {
    EXPECT_TRUE(alive.contains(event));
    asked.insert(streamOf[event]);
    return !busy.contains(streamOf[event]);
  }
  void free(void* event) const override { EXPECT_EQ(alive.erase(event), 1u); }
  std::optional<Nanoseconds> between(void*, void*) const override { return std::nullopt; }
  void* contextOf(void*) const override { return nullptr; }
  void* makeStream(void*) const override { return nullptr; }

  std::set<void*> busy, capturing;  ///< streams
  std::optional<void*> heldUp;      ///< the stream whose launches wait: its queue is full
  mutable std::atomic<bool> holdingUp{false}, letGo{false};
  mutable std::set<void*> recorded, asked, alive;
  mutable std::map<void*, void*> streamOf;
  mutable std::uintptr_t made = 0;
};

class LaunchedWorkTest : public testing::Test {
 protected:
  static void* stream(std::uintptr_t number) { return reinterpret_cast<void*>(0x1000 + number); }

  FakeEvents events_;
  MarkedWork work_{[this] { return std::make_shared<test::DriverOf>(&events_); }};
};

TEST_F(LaunchedWorkTest, AsksForExactlyTheStreamsUsedSinceTheLastCut) {
  EXPECT_TRUE(work_.isDone());
  for (const int each : {1, 2, 1, 3}) work_.note(stream(each));
  EXPECT_TRUE(work_.isDone());
  EXPECT_EQ(events_.asked, (std::set{stream(1), stream(2), stream(3)}));
  events_.asked.clear();
  work_.note(stream(2));
  work_.note(nullptr);  // the default stream
  EXPECT_TRUE(work_.isDone());
  EXPECT_EQ(events_.asked, (std::set<void*>{stream(2), nullptr}));
  events_.asked.clear();
  EXPECT_TRUE(work_.isDone());
  EXPECT_TRUE(events_.asked.empty());
  EXPECT_TRUE(events_.alive.empty()) << "events are left behind";
}

TEST_F(LaunchedWorkTest, IsDoneWhenTheLastStreamIs) {
  work_.note(stream(1));
  work_.note(stream(2));
  events_.busy = {stream(1), stream(2)};
  EXPECT_FALSE(work_.isDone());
  events_.busy = {stream(2)};
  EXPECT_FALSE(work_.isDone());
  events_.asked.clear();
  EXPECT_FALSE(work_.isDone());
  EXPECT_EQ(events_.asked, std::set{stream(2)}) << "what was done is not asked for again";
  events_.busy.clear();
  EXPECT_TRUE(work_.isDone());
}

TEST_F(LaunchedWorkTest, WhatIsCapturedDoesNotRun) {
  work_.note(stream(1));
  events_.busy = {stream(1)};
  events_.capturing = {stream(1)};
  work_.note(stream(1));
  EXPECT_TRUE(work_.isDone());
  EXPECT_TRUE(events_.alive.empty());
}

TEST_F(LaunchedWorkTest, ManyStreamsLeaveFewEvents) {
  events_.busy = {stream(0)};
  for (int each = 0; each < 1000; ++each) {
    work_.note(stream(each));
    ASSERT_LE(events_.alive.size(), 64u);
  }
  EXPECT_FALSE(work_.isDone()) << "the first one's is kept: it is not done";
}

// One thread's launch waits for its device, which waits for what another thread is about to launch.
TEST_F(LaunchedWorkTest, NobodyWaitsForAnothersLaunch) {
  work_.note(stream(1));
  events_.heldUp = stream(1);
  std::thread waits([&] { work_.note(stream(1)); });
  while (!events_.holdingUp) std::this_thread::yield();
  std::thread other([&] {
    work_.note(stream(2));
    EXPECT_FALSE(work_.isDone()) << "the other one's launch is under way";
    events_.letGo = true;
  });
  other.join();
  waits.join();
  EXPECT_TRUE(work_.isDone());
  EXPECT_TRUE(events_.alive.empty());
}

TEST(LaunchedWork, WithoutEventsAllCountsAsDone) {
  MarkedWork noDriver([] { return nullptr; });
  MarkedWork oldDriver([] { return std::make_shared<test::DriverOf>(nullptr); });
  for (MarkedWork* work : {&noDriver, &oldDriver}) {
    work->note(nullptr);
    EXPECT_TRUE(work->isDone());
  }
}

}  // namespace
}  // namespace falcon::gpu
