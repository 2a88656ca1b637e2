// The link tests over a net plugin, which carries them as it does the job's data.
#include <gtest/gtest.h>

#include <thread>

#include "unit/transport/plugin_world.h"
#include "validate/link_test.h"
#include "validate/wave.h"

namespace falcon::validate {
namespace {

using falcon::test::FakeNet;
using transport::test::PluginWorld;

const Wave pluginWave{.run = 1, .links = {{42, {0, 1}, 0, 1}}};
/// On a busy machine an end may get no processor for seconds.
const LinkTestSettings settings = [] {
  LinkTestSettings patient = testSettings();
  patient.answerLimit = patient.limit = 30s;
  return patient;
}();

void expectMeasured(const std::vector<LinkMeasurement>& measurements) {
  ASSERT_EQ(measurements.size(), 1U);
  EXPECT_EQ(measurements[0].status, LinkStatus::measured);
  EXPECT_EQ(measurements[0].medium, transport::Medium::socket);
  EXPECT_GE(measurements[0].bytes, settings.fewestBytes);  // firstBytes, but where a busy machine is slow
}

TEST(PluginLinks, AreMeasuredWithBothEndsInOneThread) {
  const FakeNet fake("12");
  PluginWorld world(fake, 2);
  const LocalCommunicator locals[] = {{42, 0, world.ports[0].get()}, {42, 1, world.ports[1].get()}};
  const auto waiter = transport::makeWaiter();
  for (std::uint64_t run = 1; run <= 3; ++run) {
    Wave again = pluginWave;
    again.run = run;
    expectMeasured(runWave(again, locals, settings, *waiter, SystemClock::instance(), 60s));
  }
  EXPECT_GT(fake.counts().messages, 0);
}

TEST(PluginLinks, AreMeasuredWithBothEndsInTwoThreads) {
  const FakeNet fake("9");
  PluginWorld world(fake, 2);
  std::thread sender([&] {
    const LocalCommunicator local{42, 0, world.ports[0].get()};
    const auto waiter = transport::makeWaiter();
    EXPECT_TRUE(runWave(pluginWave, {&local, 1}, settings, *waiter, SystemClock::instance(), 60s).empty());
  });
  const LocalCommunicator local{42, 1, world.ports[1].get()};
  const auto waiter = transport::makeWaiter();
  expectMeasured(runWave(pluginWave, {&local, 1}, settings, *waiter, SystemClock::instance(), 60s));
  sender.join();
}

}  // namespace
}  // namespace falcon::validate
