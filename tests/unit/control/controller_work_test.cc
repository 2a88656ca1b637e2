// Iterations whose work differs, as the framework tells it.

#include <gmock/gmock.h>

#include <cmath>

#include "controller_fixture.h"

namespace falcon::control::test {
namespace {

/// Sequences of other lengths in every iteration, and 1.7 times as long from iteration 150 on.
double differs(std::int64_t iteration) {
  return (1 + 0.4 * std::sin(2.4 * static_cast<double>(iteration))) * (iteration < 150 ? 1 : 1.7);
}

class ControllerWork : public ControllerTest {
 protected:
  static FakeJob& startWith(FakeJob& job) {
    job.work = differs;
    EXPECT_TRUE(job.runUntil(baselineTaken, 60)) << job.text();
    return job;
  }
};

TEST_F(ControllerWork, OfOtherIterationsIsNoSlowness) {
  FakeJob job(automatic());
  startWith(job).run(400);
  EXPECT_THAT(job.story(), testing::IsEmpty()) << job.text();
}

TEST_F(ControllerWork, HidesNobodyWhoIsSlow) {
  FakeJob job(automatic());
  startWith(job).run(250);
  ASSERT_THAT(job.story(), testing::IsEmpty()) << job.text();
  job.compute[3] = 1.6;
  ASSERT_TRUE(job.runUntil(verdict, 120)) << job.text();
  EXPECT_EQ(job.last(verdict)->culprit, slowRank(3)) << job.text();
}

TEST_F(ControllerWork, ThatIsToldFromNowOnIsMeasuredAnew) {
  FakeJob& job = start();
  job.work = [](std::int64_t iteration) { return 2 * differs(iteration % 100); };
  ASSERT_TRUE(job.runUntil(baselineTaken, 120, 2)) << job.text();
  job.run(200);
  EXPECT_THAT(job.story(), testing::IsEmpty()) << job.text();
  EXPECT_GT(job.last(baselineTaken)->afterMilliseconds, 1.4 * job.first(baselineTaken)->afterMilliseconds);
}

}  // namespace
}  // namespace falcon::control::test
