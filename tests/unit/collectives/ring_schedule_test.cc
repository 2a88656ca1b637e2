#include "collectives/ring_schedule.h"

#include <gtest/gtest.h>

namespace falcon::collectives {
namespace {

using Ring = std::vector<Rank>;
const Ring first = {0, 1, 2, 3}, second = {0, 2, 1, 3}, third = {3, 1, 0, 2};

TEST(RingSchedule, ACommittedRingComesInForceAtItsNumber) {
  RingSchedule rings(first);
  EXPECT_EQ(*rings.start(0), first);
  ASSERT_TRUE(rings.propose(3, second));
  EXPECT_EQ(*rings.start(1), first);
  rings.decide(3, true);
  EXPECT_EQ(*rings.start(2), first);
  EXPECT_EQ(rings.current(), second);
  EXPECT_EQ(*rings.start(3), second);
  EXPECT_EQ(*rings.start(4), second);
}

TEST(RingSchedule, StartsWaitForTheDecisionOnlyFromTheProposedNumberOn) {
  RingSchedule rings(first);
  ASSERT_TRUE(rings.propose(1, second));
  EXPECT_EQ(*rings.start(0), first);
  EXPECT_EQ(rings.start(1), nullptr);
  EXPECT_EQ(rings.start(1), nullptr);
  rings.decide(2, true);  // of another proposal: no effect
  EXPECT_EQ(rings.start(1), nullptr);
  rings.decide(1, false);
  EXPECT_EQ(*rings.start(1), first);
}

TEST(RingSchedule, SeveralDecisionsFollowEachOther) {
  RingSchedule rings(first);
  ASSERT_TRUE(rings.propose(5, second));
  rings.decide(5, true);
  ASSERT_TRUE(rings.propose(7, third));
  rings.decide(7, true);
  for (std::uint64_t number = 0; number < 10; ++number)
    EXPECT_EQ(*rings.start(number), number < 5 ? first : number < 7 ? second : third);
}

TEST(RingSchedule, RefusesWhatCannotBe) {
  RingSchedule rings(first);
  rings.start(0);
  rings.start(1);
  const auto codeOf = [](const Status& status) { return status.error().code(); };
  EXPECT_EQ(codeOf(rings.propose(1, second)), ErrorCode::invalidUsage) << "has started";
  EXPECT_EQ(codeOf(rings.propose(2, {0, 1, 2})), ErrorCode::invalidUsage);
  EXPECT_EQ(codeOf(rings.propose(2, {0, 1, 2, 2})), ErrorCode::invalidUsage);
  EXPECT_EQ(codeOf(rings.propose(2, {0, 1, 2, 4})), ErrorCode::invalidUsage);
  ASSERT_TRUE(rings.propose(2, second));
  EXPECT_EQ(codeOf(rings.propose(9, third)), ErrorCode::invalidUsage) << "another one is undecided";
  rings.decide(2, true);
  EXPECT_TRUE(rings.propose(9, third));
}

}  // namespace
}  // namespace falcon::collectives
