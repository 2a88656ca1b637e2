#include "base/overwriting_ring.h"

#include <gtest/gtest.h>

#include <array>
#include <thread>
#include <vector>

namespace falcon {
namespace {

struct Slot {
  std::atomic<std::uint64_t> ticket{0};
  std::atomic<std::uint64_t> one{0}, other{0};
};

class OverwritingRingTest : public ::testing::Test {
 protected:
  static constexpr std::uint64_t count = 4;

  bool write(std::uint64_t value) {
    return ring_.write([&](Slot& slot) { slot.one = slot.other = value; });
  }
  /// Writes `value`, and the others meanwhile, in the middle of it.
  template <class Others>
  void writeSlowly(std::uint64_t value, Others others) {
    ASSERT_TRUE(ring_.write([&](Slot& slot) {
      others();
      slot.one = value;
    }));
  }
  RingRecord found(std::uint64_t index) {
    return ring_.read(index, [](const Slot&) {});
  }
  std::vector<std::uint64_t> all() {
    std::vector<std::uint64_t> values;
    for (std::uint64_t index = 0; index < ring_.end(); ++index) {
      std::uint64_t value = 0;
      if (ring_.read(index, [&](const Slot& slot) { value = slot.one; }) == RingRecord::whole) values.push_back(value);
    }
    return values;
  }

  using Values = std::vector<std::uint64_t>;
  std::array<Slot, count> slots_;
  std::atomic<std::uint64_t> head_{0};
  OverwritingRing<Slot> ring_{slots_.data(), count, head_};
};

TEST_F(OverwritingRingTest, KeepsTheNewest) {
  EXPECT_EQ(ring_.end(), 0u);
  for (std::uint64_t i = 0; i < 3; ++i) write(10 + i);
  EXPECT_EQ(slots_[2].ticket.load(), 3u) << "the files' format";
  EXPECT_EQ(all(), (Values{10, 11, 12}));
  for (std::uint64_t i = 3; i < 6; ++i) write(10 + i);
  EXPECT_EQ(ring_.end(), 6u);
  EXPECT_EQ(all(), (Values{12, 13, 14, 15}));
  EXPECT_EQ(found(1), RingRecord::lost);
  EXPECT_EQ(found(5), RingRecord::whole);
}

TEST_F(OverwritingRingTest, TellsWhatIsBeingWritten) {
  writeSlowly(10, [&] {
    EXPECT_EQ(ring_.end(), 1u);
    EXPECT_EQ(found(0), RingRecord::notYet);
    write(11);
    EXPECT_EQ(found(1), RingRecord::whole);
  });
  EXPECT_EQ(all(), (Values{10, 11}));
}

TEST_F(OverwritingRingTest, LeavesOutWhatComesToASlotThatIsBeingWritten) {
  writeSlowly(10, [&] {
    for (std::uint64_t i = 1; i < 10; ++i) EXPECT_EQ(write(10 + i), i % count != 0);
    EXPECT_EQ(all(), (Values{16, 17, 19})) << "three of the four slots";
    EXPECT_EQ(found(0), RingRecord::lost);
    EXPECT_EQ(found(4), RingRecord::lost);
    EXPECT_EQ(found(8), RingRecord::lost) << "nobody waits for it";
    EXPECT_EQ(found(12), RingRecord::notYet);
  });
  EXPECT_EQ(found(0), RingRecord::lost) << "overtaken";
  EXPECT_EQ(found(4), RingRecord::lost);
  EXPECT_EQ(found(8), RingRecord::lost);
  EXPECT_EQ(found(12), RingRecord::notYet);
  for (std::uint64_t i = 10; i < 14; ++i) EXPECT_TRUE(write(10 + i)) << "its slot is as any other again";
  EXPECT_EQ(all(), (Values{20, 21, 22, 23}));
}

TEST_F(OverwritingRingTest, LeavesOutTheRecordOfWhoIsOvertakenBeforeItsSlot) {
  head_ = 2;
  for (std::uint64_t i = 2; i < 8; ++i) write(10 + i);
  head_ = 2;  // as who was given 2 and has not come to its slot before
  EXPECT_FALSE(write(99));
  EXPECT_EQ(slots_[2].one.load(), 16u);
}

TEST_F(OverwritingRingTest, DoesNotCountWhatIsOverwrittenWhileItIsRead) {
  write(10);
  const auto overwriting = [&](const Slot&) {
    for (std::uint64_t i = 0; i < count; ++i) write(11 + i);
  };
  EXPECT_EQ(ring_.read(0, overwriting), RingRecord::lost);
}

// A ring that is hardly larger than the number of its threads, so that they meet in its slots all the time.
TEST_F(OverwritingRingTest, HoldsWholeRecordsWhateverItsThreadsDo) {
  constexpr std::uint64_t threads = 3, each = 30'000;
  std::atomic<std::uint64_t> next{0};
  std::vector<std::thread> writers;
  for (std::uint64_t thread = 0; thread < threads; ++thread)
    writers.emplace_back([&] {
      for (std::uint64_t i = 0; i < each; ++i) {
        const std::uint64_t value = next.fetch_add(1);
        ring_.write([&](Slot& slot) {
          slot.one.store(value, std::memory_order_relaxed);
          if (i % 64 == 0) std::this_thread::yield();
          slot.other.store(value, std::memory_order_relaxed);
        });
      }
    });
  std::uint64_t at = 0, whole = 0;
  const auto readAll = [&] {
    for (const std::uint64_t end = ring_.end(); at < end; ++at) {
      std::uint64_t one = 0, other = 0;
      const RingRecord found = ring_.read(at, [&](const Slot& slot) {
        one = slot.one.load(std::memory_order_relaxed);
        other = slot.other.load(std::memory_order_relaxed);
      });
      if (found == RingRecord::notYet) return;
      if (found != RingRecord::whole) continue;
      ++whole;
      ASSERT_EQ(one, other);
    }
  };
  while (next.load() < threads * each) readAll();
  for (std::thread& writer : writers) writer.join();
  EXPECT_GT(whole, 0u);
  EXPECT_EQ(ring_.end(), threads * each);
  for (std::uint64_t i = 0; i < count; ++i) EXPECT_TRUE(write(i)) << "nobody is in a slot any more";
  readAll();
  EXPECT_EQ(at, ring_.end()) << "nothing is waited for any more";
}

}  // namespace
}  // namespace falcon
