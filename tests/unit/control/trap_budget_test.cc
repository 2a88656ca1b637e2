#include "control/trap_budget.h"

#include <gtest/gtest.h>

namespace falcon::control {
namespace {

using Answer = TrapBudget::Answer;

TEST(TrapBudget, AllowsTheFirstTrapOfAnOnsetUpToFiveSeconds) {
  const TrapBudget budget(0.5, 100s);
  EXPECT_EQ(budget.ask(100s, true), Answer::yes);
  EXPECT_EQ(budget.limit(100s, true, 10s), 5s);
  EXPECT_EQ(budget.limit(100s, true, 2s), 2s);
  EXPECT_EQ(budget.limit(100s + 1h, true, 10s), 10s);
  EXPECT_EQ(budget.limit(100s + 1h, true, 60s), 18s);
}

TEST(TrapBudget, AllowsFurtherOnesOnlyOutOfItsShare) {
  TrapBudget budget(1, 0s);
  EXPECT_EQ(budget.ask(50s, false), Answer::usedUp);  // half a second is too short to learn anything
  EXPECT_EQ(budget.ask(200s, false), Answer::yes);
  EXPECT_EQ(budget.limit(200s, false, 10s), 2s);
  budget.spent(4s, true, 200s);
  EXPECT_EQ(budget.ask(300s, false), Answer::usedUp);
  EXPECT_EQ(budget.ask(300s, true), Answer::yes);
  EXPECT_EQ(budget.ask(500s, false), Answer::yes);
  EXPECT_EQ(budget.limit(500s, false, 10s), 1s);
}

TEST(TrapBudget, WaitsTwiceAsLongAfterEveryTrapThatFoundNobody) {
  TrapBudget budget(100, 0s);
  Nanoseconds now = 1000s, pause = 5s;
  for (int i = 0; i < 5; ++i, pause *= 2) {
    budget.spent(1s, false, now);
    EXPECT_EQ(budget.ask(now + pause - 1s, true), Answer::tooSoon);
    EXPECT_EQ(budget.ask(now + pause, true), Answer::yes);
    now += pause;
  }
  budget.spent(1s, true, now);
  EXPECT_EQ(budget.ask(now, true), Answer::yes);
  budget.spent(1s, false, now);
  EXPECT_EQ(budget.ask(now + 5s, true), Answer::yes);
}

}  // namespace
}  // namespace falcon::control
