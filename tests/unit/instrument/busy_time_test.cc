#include "instrument/busy_time.h"

#include <gtest/gtest.h>

namespace falcon::instrument {
namespace {

TEST(BusyTime, CountsOverlappingCallsOnce) {
  BusyTime busy;
  busy.add(1ms, 3ms);
  busy.add(1ms, 3ms);  // another call of the same group
  busy.add(2ms, 4ms);  // another thread
  busy.add(6ms, 7ms);
  busy.add(5ms, 8ms);
  EXPECT_EQ(busy.total().count(), Nanoseconds(6ms).count());
}

}  // namespace
}  // namespace falcon::instrument
