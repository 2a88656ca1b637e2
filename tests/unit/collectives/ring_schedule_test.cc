#include "collectives/ring_schedule.h"

#include <gtest/gtest.h>

#include <thread>

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

TEST(RingSchedule, WithoutARingOnlyWhileNoChangeIsUnderWay) {
  RingSchedule rings(first);
  EXPECT_TRUE(rings.startWithoutRing(0));
  ASSERT_FALSE(rings.propose(0, second)) << "has started";
  EXPECT_TRUE(rings.startWithoutRing(1));
  ASSERT_TRUE(rings.propose(2, second));
  EXPECT_FALSE(rings.startWithoutRing(2));
  EXPECT_EQ(rings.start(2), nullptr);
  rings.decide(2, false);
  EXPECT_TRUE(rings.propose(2, second)) << "has not started";
  rings.decide(2, true);
  EXPECT_FALSE(rings.startWithoutRing(2));
  EXPECT_EQ(*rings.start(2), second);
  EXPECT_TRUE(rings.startWithoutRing(3));
  EXPECT_EQ(rings.current(), second);
}

TEST(RingSchedule, OnALikeRingOnlyWhileItIsInForce) {
  RingSchedule rings(first);
  const RingSchedule::Order before = rings.start(0);
  EXPECT_TRUE(rings.startOn(before, 1));
  ASSERT_TRUE(rings.propose(3, second));
  EXPECT_FALSE(rings.startOn(before, 2)) << "a change is under way";
  EXPECT_EQ(rings.start(2), before);
  rings.decide(3, true);
  EXPECT_FALSE(rings.startOn(before, 3));
  const RingSchedule::Order after = rings.start(3);
  EXPECT_EQ(*after, second);
  EXPECT_FALSE(rings.startOn(before, 4)) << "no change is under way any more, but the ring is another";
  EXPECT_TRUE(rings.startOn(after, 4));
}

// What the absence of locks must not allow: a collective that starts although its ring is being decided.
TEST(RingSchedule, NoCollectiveStartsInTheMiddleOfADecision) {
  RingSchedule rings(first);
  constexpr std::uint64_t proposals = 300;
  std::atomic<std::uint64_t> next{0}, allowed{0};
  std::atomic<bool> ended{false};
  std::thread calls([&] {
    for (std::uint64_t number = 0; !ended; ++number) {
      // A few at a time: who is not waited for would be past every proposal before it is made.
      while (number >= allowed && !ended) std::this_thread::yield();
      if (!rings.startWithoutRing(number))
        while (!rings.start(number)) std::this_thread::yield();
      next = number + 1;
    }
  });
  std::uint64_t attempt = 0;
  for (std::uint64_t accepted = 0; accepted < proposals;) {
    const std::uint64_t from = next + accepted % 3;
    allowed = from + attempt++ % 3;  // every third one finds its collective not yet started
    if (!rings.propose(from, accepted % 2 == 0 ? second : first)) continue;
    ++accepted;
    allowed = from + 2;
    for (int look = 0; look < 20; ++look) {
      EXPECT_LE(next, from);
      std::this_thread::yield();
    }
    rings.decide(from, accepted % 5 != 0);
  }
  ended = true;
  calls.join();
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
