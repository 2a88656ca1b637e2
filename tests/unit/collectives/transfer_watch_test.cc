#include "collectives/transfer_watch.h"

#include <gtest/gtest.h>

namespace falcon::collectives {
namespace {

class Keeper final : public TransferRecorder {
 public:
  void record(const TransferTiming& timing) noexcept override { timings.push_back(timing); }
  std::vector<TransferTiming> timings;
};

/// Ring step: receive from 3, send to 5; peers are told apart, and so are waiting and moving.
TEST(TransferWatch, TellsWaitingFromMoving) {
  ManualClock clock;
  clock.advance(100ms);
  TransferTiming origin;
  origin.communicator = 9;
  origin.sequence = 4;
  origin.channel = 1;
  TransferWatch watch(clock, origin);

  watch.stuckReceiving(3);  // nothing there for 20 ms, looked at twice
  clock.advance(10ms);
  watch.stuckReceiving(3);
  clock.advance(10ms);
  watch.stuckSending(5, false);  // arrived, but no credit for 5 ms, then the slots are in flight for 7 ms
  clock.advance(5ms);
  watch.stuckSending(5, true);
  clock.advance(7ms);
  watch.stepBegins(3, 5);
  clock.advance(2ms);
  watch.stepEnds(3, 5, 1000);
  clock.advance(30ms);  // the last bytes are on their way
  watch.flushed();

  Keeper keeper;
  watch.tell(keeper);
  ASSERT_EQ(keeper.timings.size(), 2u);
  const TransferTiming& in = keeper.timings[0];
  EXPECT_EQ(in.communicator, 9u);
  EXPECT_EQ(in.sequence, 4u);
  EXPECT_EQ(in.channel, 1);
  EXPECT_EQ(in.peer, 3);
  EXPECT_FALSE(in.sending);
  EXPECT_EQ(in.bytes, 1000u);
  EXPECT_EQ(in.start, 100ms);
  EXPECT_EQ(in.stop, 134ms);
  EXPECT_EQ(in.waiting, 20ms);
  EXPECT_EQ(in.moving, 2ms);
  const TransferTiming& out = keeper.timings[1];
  EXPECT_EQ(out.peer, 5);
  EXPECT_TRUE(out.sending);
  EXPECT_EQ(out.start, 120ms);
  EXPECT_EQ(out.stop, 164ms);
  EXPECT_EQ(out.waiting, 5ms);
  EXPECT_EQ(out.moving, 39ms);
}

/// Sends nothing; the network counts for it.
class CountedPort final : public transport::SendPort {
 public:
  std::size_t chunkBytes() const override { return 0; }
  Result<std::span<std::byte>> acquire() override { return std::span<std::byte>(); }
  void commit(std::size_t) override {}
  Result<bool> progress() override { return false; }
  bool flushed() const override { return true; }
  transport::WaitSource waitSource() const override { return {}; }
  std::optional<Nanoseconds> underWay() const override { return counted; }

  std::optional<Nanoseconds> counted;
};

TEST(TransferWatch, AsksTheNetworkBeforeTheFirstStepAndAfterTheLast) {
  const ManualClock clock;
  CountedPort counted, uncounted;
  counted.counted = 50ms;
  TransferWatch watch(clock, {});
  for (int step = 0; step < 2; ++step) {
    watch.sendsBy(5, counted);
    watch.sendsBy(6, uncounted);
    watch.stepBegins(-1, 5);
    watch.stepEnds(-1, 5, 10);
    watch.stepEnds(-1, 6, 10);
    *counted.counted += 10ms;
  }
  watch.flushed();
  Keeper keeper;
  watch.tell(keeper);
  ASSERT_EQ(keeper.timings.size(), 2u);
  EXPECT_EQ(keeper.timings[0].underWayBefore, 50ms);
  EXPECT_EQ(keeper.timings[0].underWayAfter, 70ms);
  EXPECT_LT(keeper.timings[1].underWayBefore, 0ns);
  EXPECT_LT(keeper.timings[1].underWayAfter, 0ns);
  EXPECT_NE(keeper.timings[0].connection, keeper.timings[1].connection);
}

}  // namespace
}  // namespace falcon::collectives
