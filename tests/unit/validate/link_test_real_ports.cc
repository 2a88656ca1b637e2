// The same over the real ports: shared memory and sockets, with both ends in one thread and in two.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "transport/link_throttle.h"
#include "unit/transport/ports_world.h"
#include "validate/wave.h"

namespace falcon::validate {
namespace {

using transport::Medium;
using transport::test::World;

const Wave portsWave{.run = 1, .links = {{42, {0, 1}, 0, 1}}};

/// On a busy machine an end may get no processor for seconds.
LinkTestSettings patientSettings() {
  LinkTestSettings settings = testSettings();
  settings.answerLimit = 30s;
  settings.limit = 30s;
  return settings;
}

struct RealPorts : testing::TestWithParam<Medium> {};

TEST_P(RealPorts, BothEndsInOneThread) {
  World world(2, GetParam());
  const LocalCommunicator locals[] = {{42, 0, world.ports[0].get()}, {42, 1, world.ports[1].get()}};
  const auto waiter = transport::makeWaiter();
  for (std::uint64_t run = 1; run <= 3; ++run) {
    Wave again = portsWave;
    again.run = run;
    const auto measurements = runWave(again, locals, patientSettings(), *waiter, SystemClock::instance(), 60s);
    ASSERT_EQ(measurements.size(), 1u);
    EXPECT_EQ(measurements[0].status, LinkStatus::measured);
    EXPECT_EQ(measurements[0].medium, GetParam());
    EXPECT_GE(measurements[0].bytes, testSettings().fewestBytes);  // firstBytes, but where a busy machine is slow
    RecordProperty("megabytesPerSecond", static_cast<int>(measurements[0].bytesPerSecond() / 1e6));
  }
}

TEST_P(RealPorts, TheSenderIsToldLater) {
  World world(2, GetParam());
  std::thread sender([&] {
    std::this_thread::sleep_for(100ms);
    const LocalCommunicator local{42, 0, world.ports[0].get()};
    const auto waiter = transport::makeWaiter();
    EXPECT_TRUE(runWave(portsWave, {&local, 1}, patientSettings(), *waiter, SystemClock::instance(), 60s).empty());
  });
  const LocalCommunicator local{42, 1, world.ports[1].get()};
  const auto waiter = transport::makeWaiter();
  const auto measurements = runWave(portsWave, {&local, 1}, patientSettings(), *waiter, SystemClock::instance(), 60s);
  sender.join();
  ASSERT_EQ(measurements.size(), 1u);
  EXPECT_EQ(measurements[0].status, LinkStatus::measured);
  EXPECT_GT(measurements[0].latency, 0);
}
INSTANTIATE_TEST_SUITE_P(Media, RealPorts, testing::Values(Medium::sharedMemory, Medium::socket),
                         [](const auto& medium) { return transport::test::mediumName(medium.param); });

TEST(RealPorts, AThrottledSocketIsMeasuredAtItsRate) {
  const auto file = std::filesystem::temp_directory_path() / ("falcon_throttle_" + std::to_string(getpid()));
  std::ofstream(file) << "0 1 8000000\n";
  setenv("NCCL_FALCON_INJECT_LINK_FILE", file.c_str(), 1);
  World world(2, Medium::socket);
  const LocalCommunicator locals[] = {{42, 0, world.ports[0].get()}, {42, 1, world.ports[1].get()}};
  const auto waiter = transport::makeWaiter();
  const auto measurements = runWave(portsWave, locals, patientSettings(), *waiter, SystemClock::instance(), 60s);
  unsetenv("NCCL_FALCON_INJECT_LINK_FILE");
  std::filesystem::remove(file);
  for (const Link& link : {Link{0, 1}, Link{1, 0}}) std::filesystem::remove(transport::linkCountsFile(file, link));
  ASSERT_EQ(measurements.size(), 1u);
  EXPECT_EQ(measurements[0].status, LinkStatus::measured);
  // Above its rate a throttle cannot be; below, on a loaded machine, it may.
  EXPECT_LT(measurements[0].bytesPerSecond(), 9.6e6);
  EXPECT_GT(measurements[0].bytesPerSecond(), 1e6);
}

}  // namespace
}  // namespace falcon::validate
