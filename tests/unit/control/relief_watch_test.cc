#include "control/relief_watch.h"

#include <gtest/gtest.h>

namespace falcon::control {
namespace {

TEST(ReliefWatch, WantsEnoughHealthyValuesButForgivesOne) {
  ReliefWatch watch(1, 4, 3);  // the border lies at 2
  for (const double slow : {4.0, 3.5, 2.1}) EXPECT_FALSE(watch.add(slow));
  EXPECT_FALSE(watch.add(1.0));
  EXPECT_FALSE(watch.add(1.9));
  EXPECT_FALSE(watch.add(4.0));  // one relapse
  EXPECT_TRUE(watch.add(1.1));
}

TEST(ReliefWatch, ASlowValueIsNeverRelief) {
  ReliefWatch watch(1, 4, 3);
  for (int i = 0; i < 3; ++i) watch.add(1);
  EXPECT_FALSE(watch.add(4));
}

TEST(ReliefWatch, AlternatingValuesAreNoRelief) {
  ReliefWatch watch(1, 4, 4);
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(watch.add(i % 2 ? 1 : 4));
}

TEST(ReliefWatch, CannotTellWhereHealthyAndSlowAreTheSame) {
  for (ReliefWatch watch : {ReliefWatch(1, 1, 2), ReliefWatch(2, 1, 2), ReliefWatch(0, 0, 2)})
    for (int i = 0; i < 10; ++i) EXPECT_FALSE(watch.add(0.5));
}

TEST(ReliefWatch, OfWhatIsSlowByLessThanBeforeIsNone) {
  ReliefWatch watch(1, 4, 2, 1.3);
  for (int i = 0; i < 10; ++i) EXPECT_FALSE(watch.add(1.5)) << "nearer to 1 than to 4";
  EXPECT_FALSE(watch.add(1.1));
  EXPECT_TRUE(watch.add(1.1));
}

}  // namespace
}  // namespace falcon::control
