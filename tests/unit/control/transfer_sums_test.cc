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
    const test::NoMemory none;
    sums.record(to(2));
    sums.record(to(1));
  }
  const TransferProfile profile = sums.take();
  ASSERT_EQ(profile.sums.size(), 1u);
  EXPECT_EQ(profile.sums[0].peer, 1);
  EXPECT_EQ(profile.sums[0].bytes, 200u);
}

}  // namespace
}  // namespace falcon::control
