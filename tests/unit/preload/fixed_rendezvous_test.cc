#include "preload/fixed_rendezvous.h"

#include <gtest/gtest.h>

#include <set>

#include "bootstrap/make_unique_id.h"
#include "unit/base/environment.h"

namespace falcon::preload {
namespace {

std::unique_ptr<FixedRendezvous> process() {
  return std::make_unique<FixedRendezvous>();
}

TEST(FixedRendezvous, IsTheSameForAllRanksOfACommunicator) {
  const Variable place("NCCL_FALCON_COMM_ID", "127.0.0.1:4711");
  const auto first = process(), second = process();
  for (int round = 0; round < 3; ++round) {
    const auto mine = first->next(0, 2), theirs = second->next(1, 2);
    ASSERT_TRUE(mine && theirs);
    EXPECT_EQ(mine->bytes(), theirs->bytes());
    EXPECT_EQ(mine->address.text(), "127.0.0.1:4711");
    EXPECT_TRUE(bootstrap::hasFixedAddress(*mine)) << "rank 0 opens it";
  }
}

TEST(FixedRendezvous, IsTheSameForRanksThatAreThreadsOfOneProcess) {
  const Variable place("NCCL_FALCON_COMM_ID", "127.0.0.1:4711");
  const auto only = process();
  EXPECT_EQ(only->next(0, 2)->bytes(), only->next(1, 2)->bytes());
}

TEST(FixedRendezvous, IsAnotherForEachCommunicator) {
  const Variable place("NCCL_FALCON_COMM_ID", "127.0.0.1:4711");
  const auto only = process();
  std::set<std::uint64_t> keys;
  for (int size = 2; size < 6; ++size)
    for (int round = 0; round < 5; ++round) keys.insert(only->next(0, size)->key);
  EXPECT_EQ(keys.size(), 20u);
}

TEST(FixedRendezvous, IsNowhereWhereNothingSaysWhereItIs) {
  EXPECT_FALSE(process()->next(0, 2));
  for (const char* wrong : {"nonsense", "127.0.0.1:0"}) {
    const Variable place("NCCL_FALCON_COMM_ID", wrong);
    EXPECT_FALSE(process()->next(0, 2)) << wrong;
  }
}

}  // namespace
}  // namespace falcon::preload
