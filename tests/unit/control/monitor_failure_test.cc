// The monitor's thread throws, as it does where there is no memory: Falcon goes off, and the job goes on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <new>
#include <thread>

#include "control/job.h"
#include "control/trap_callbacks.h"
#include "instrument/call_log.h"
#include "unit/base/environment.h"
#include "unit/control/idle_membership.h"

namespace falcon::control {
namespace {

/// A watchdog of the application's that finds no memory, the first `failures` times that it is told of a held job.
struct PoorWatchdog {
  std::atomic<int> failures;
  std::atomic<int> told{0};

  explicit PoorWatchdog(int times) : failures(times) { TrapCallbacks::ofProcess().add(&hear, this); }
  ~PoorWatchdog() { TrapCallbacks::ofProcess().remove(&hear, this); }
  static void hear(int, unsigned, void* context) {
    auto& self = *static_cast<PoorWatchdog*>(context);
    ++self.told;
    if (self.failures > 0 && self.failures-- > 0) throw std::bad_alloc();
  }
};

class MonitorFailure : public testing::TestWithParam<int> {
 protected:
  ~MonitorFailure() override { std::filesystem::remove_all(instrument::jobFolder(name_)); }

  const std::string name_ = "test-monitor-" + std::to_string(getpid());
  const Variable falcon_{"NCCL_FALCON", "1"};
  const Variable job_{"NCCL_FALCON_JOB", name_.c_str()};
};

// Once where the trap is closed; also where it is to be let go; and again and again.
TEST_P(MonitorFailure, SwitchesFalconOffAndHoldsNobody) {
  PoorWatchdog watchdog(GetParam());
  auto reactor = transport::makeReactor(*SocketAddress::parse("127.0.0.1:0"));
  ASSERT_TRUE(reactor);
  const auto job = Job::acquire(*reactor, "unused");
  ASSERT_TRUE(job);
  falcon::test::IdleMembership membership;
  KnownCommunicator known;
  known.membership = &membership;
  known.members.resize(1);
  known.members[0].extra = job->contact();
  job->add(std::move(known));

  testing::internal::CaptureStderr();
  const Status suspended = job->suspend(60s);
  EXPECT_FALSE(suspended);
  // A call as the training makes them; it would wait for a minute.
  const auto begun = std::chrono::steady_clock::now();
  job->hooks().hold->pass();
  EXPECT_LT(std::chrono::steady_clock::now() - begun, 30s);
  EXPECT_GT(watchdog.told, 0);
  // The monitor lives: it answers, and says that it is off.
  const Status again = job->suspend(60s);
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().message(), "Falcon was switched off in this job");
  job->remove(membership);
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_THAT(said, testing::HasSubstr("Falcon's monitor failed: std::bad_alloc"));
  EXPECT_EQ(said.find("monitor failed"), said.rfind("monitor failed")) << said;
}
INSTANTIATE_TEST_SUITE_P(Times, MonitorFailure, testing::Values(1, 2, 5));

}  // namespace
}  // namespace falcon::control
