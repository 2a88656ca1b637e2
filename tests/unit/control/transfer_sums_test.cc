#include "control/transfer_sums.h"

#include <gtest/gtest.h>

#include "harness/no_memory.h"

namespace falcon::control {
namespace {

TransferTiming to(Rank peer) {
  TransferTiming timing;
  timing.communicator = 1;
  timing.peer = peer;
  timing.sending = true;
  timing.bytes = 100;
  return timing;
}

// The recorder's calls must not fail: the training thread makes them.
TEST(TransferSums, WithoutMemoryForANewConnectionTheKnownOnesAreStillCounted) {
  TransferSums sums;
  sums.record(to(1));
  {
    const falcon::test::NoMemory none;
    sums.record(to(2));
    sums.record(to(1));
  }
  const TransferProfile profile = sums.take();
  ASSERT_EQ(profile.sums.size(), 1u);
  EXPECT_EQ(profile.sums[0].peer, 1);
  EXPECT_EQ(profile.sums[0].bytes, 200u);
}

double movingAfter(TransferSums& sums, std::initializer_list<TransferTiming> timings) {
  for (const TransferTiming& each : timings) sums.record(each);
  const TransferProfile profile = sums.take();
  return profile.sums.empty() ? -1 : profile.sums[0].moving;
}

TransferTiming underWay(Nanoseconds before, Nanoseconds after, std::uint64_t connection = 7) {
  TransferTiming timing = to(1);
  timing.moving = 2ms;
  timing.connection = connection;
  timing.underWayBefore = before;
  timing.underWayAfter = after;
  return timing;
}

// Through sockets a sender is done when the kernel has its bytes; what tells of the network is what comes after.
TEST(TransferSums, BytesThatHaveLeftTheProcessMoveOn) {
  TransferSums sums;
  sums.enable(true);
  EXPECT_DOUBLE_EQ(movingAfter(sums, {underWay(1000ms, 1040ms)}), 0.040);
  // Between the two it went on.
  EXPECT_DOUBLE_EQ(movingAfter(sums, {underWay(1100ms, 1120ms)}), 0.080);
  EXPECT_DOUBLE_EQ(movingAfter(sums, {underWay(1120ms, 1121ms)}), 0.002) << "our own copying took longer";
  EXPECT_DOUBLE_EQ(movingAfter(sums, {underWay(-1ns, -1ns)}), 0.002) << "nobody counts";
  EXPECT_DOUBLE_EQ(movingAfter(sums, {underWay(5ms, 15ms, 8), underWay(5000ms, 5010ms, 9)}), 0.020)
      << "each connection has its own count";
  EXPECT_DOUBLE_EQ(movingAfter(sums, {underWay(3ms, 6ms)}), 0.003) << "another one in its place";
  sums.enable(false);
  sums.enable(true);
  EXPECT_DOUBLE_EQ(movingAfter(sums, {underWay(9000ms, 9030ms)}), 0.030) << "what nobody looked at is no part of it";
}

}  // namespace
}  // namespace falcon::control
