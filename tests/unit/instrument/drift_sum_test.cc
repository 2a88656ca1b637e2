#include "instrument/drift_sum.h"

#include <gtest/gtest.h>

namespace falcon::instrument {
namespace {

int valuesUntilRaised(double distance) {
  DriftSum sum;
  for (int i = 1; i <= 1000; ++i) {
    sum.add(distance);
    if (sum.raised()) return i;
  }
  return 0;
}

TEST(DriftSum, IsRaisedByWhatStaysBeyondTheReferenceAndSoonerIfFarther) {
  EXPECT_GT(valuesUntilRaised(0.1), valuesUntilRaised(0.2));
  EXPECT_GT(valuesUntilRaised(0.2), valuesUntilRaised(0.4));
  EXPECT_GT(valuesUntilRaised(0.4), 0);
  EXPECT_EQ(valuesUntilRaised(0), 0);
  EXPECT_EQ(valuesUntilRaised(-1), 0);
}

TEST(DriftSum, CutsWhatIsFar) {
  // A far value weighs no more than 2: twenty small ones undo it, and nineteen do not.
  DriftSum sum;
  sum.add(1000);
  for (int i = 0; i < 19; ++i) sum.add(-0.101);
  EXPECT_EQ(sum.length(), 20);
  sum.add(-0.101);
  EXPECT_EQ(sum.length(), 0);
  EXPECT_GE(valuesUntilRaised(1000), 8);  // a burst of spikes is no drift
}

TEST(DriftSum, ForgetsAndCountsFromZero) {
  DriftSum sum;
  for (int i = 0; i < 5; ++i) sum.add(1);
  EXPECT_EQ(sum.length(), 5);
  const double before = sum.probability();
  for (int i = 0; i < 5; ++i) sum.add(-1);
  EXPECT_EQ(sum.length(), 0);
  EXPECT_LT(sum.probability(), before);
  sum.add(1);
  EXPECT_EQ(sum.length(), 1);
  sum.clear();
  EXPECT_EQ(sum.length(), 0);
  EXPECT_FALSE(sum.raised());
}

}  // namespace
}  // namespace falcon::instrument
