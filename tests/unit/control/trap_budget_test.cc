#include "control/trap_budget.h"

#include <gtest/gtest.h>

namespace falcon::control {
namespace {

TEST(TrapBudget, AllowsTheFirstTrapOfAnOnsetUpToFiveSeconds) {
  const TrapBudget budget(0.5, 100s);
  EXPECT_TRUE(budget.allows(100s, true));
  EXPECT_EQ(budget.limit(100s, true, 10s), 5s);
  EXPECT_EQ(budget.limit(100s, true, 2s), 2s);
  EXPECT_EQ(budget.limit(100s + 1h, true, 10s), 10s);
  EXPECT_EQ(budget.limit(100s + 1h, true, 60s), 18s);
}

TEST(TrapBudget, AllowsFurtherOnesOnlyOutOfItsShare) {
  TrapBudget budget(1, 0s);
  EXPECT_FALSE(budget.allows(50s, false));  // half a second is too short to learn anything
  EXPECT_TRUE(budget.allows(200s, false));
  EXPECT_EQ(budget.limit(200s, false, 10s), 2s);
  budget.spent(4s);
  EXPECT_FALSE(budget.allows(300s, false));
  EXPECT_TRUE(budget.allows(300s, true));
  EXPECT_TRUE(budget.allows(500s, false));
  EXPECT_EQ(budget.limit(500s, false, 10s), 1s);
}

}  // namespace
}  // namespace falcon::control
