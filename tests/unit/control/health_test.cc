// What frameworks are told of the job's state.
#include "control/health.h"

#include <gtest/gtest.h>

namespace falcon::control {
namespace {

using instrument::JobState;

TEST(Health, IsUnknownWithoutABaselineAndWithoutFalcon) {
  EXPECT_EQ(healthOf(JobState::starting, 0), Health::unknown);
  EXPECT_EQ(healthOf(JobState::off, 0), Health::unknown);
  EXPECT_EQ(healthOf(JobState::off, 2), Health::unknown) << "nobody looks any more";
}

TEST(Health, IsSuspectedWhileFalconLooksForTheReason) {
  for (const JobState looking : {JobState::profiling, JobState::validating}) {
    EXPECT_EQ(healthOf(looking, 0), Health::suspected);
    EXPECT_EQ(healthOf(looking, 1), Health::slow) << "one is known, another one is looked for";
  }
}

TEST(Health, IsSlowAsLongAsSomebodyIs) {
  for (const JobState state : {JobState::starting, JobState::tracking, JobState::mitigating, JobState::suspended}) {
    EXPECT_EQ(healthOf(state, 1), Health::slow);
  }
  for (const JobState state : {JobState::tracking, JobState::mitigating, JobState::suspended})
    EXPECT_EQ(healthOf(state, 0), Health::healthy);
}

}  // namespace
}  // namespace falcon::control
