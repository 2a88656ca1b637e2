// Measuring links takes seconds, and communicators come and go meanwhile.
#include <gtest/gtest.h>

#include <thread>

#include "unit/control/a_member.h"
#include "unit/control/idle_host.h"
#include "validate/link_measurement.h"

namespace falcon::control {
namespace {

struct MemberWave : falcon::test::AMember {
  KnownCommunicator knownAs(falcon::test::IdleHost& host) {
    KnownCommunicator known;
    known.membership = &host;
    known.host = &host;
    return known;
  }
};

// The clock stands still and nobody answers: a wave that began ends only where it is stopped.
TEST_F(MemberWave, CommunicatorsComeAndGoWhileLinksAreMeasured) {
  auto measured = std::make_unique<falcon::test::IdleHost>(7);
  const auto ports = std::static_pointer_cast<falcon::test::UnconnectedPorts>(measured->ports());
  communicators.add(knownAs(*measured));
  const validate::Wave wave{.run = 1, .links = {{.communicator = 7, .link = {1, 0}, .from = 1, .to = 0}}};
  std::atomic<bool> done{false};
  std::thread monitor([&] {
    member.handle(1, RunWave{1, false, validate::encode(wave)});
    done = true;
  });
  while (ports->opened() < 2 && !done) std::this_thread::yield();

  // What the application's CommInit and CommDestroy come to. They return, or this test never ends.
  falcon::test::IdleHost other(8);
  communicators.add(knownAs(other));
  EXPECT_TRUE(communicators.remove(other));
  EXPECT_TRUE(communicators.remove(*measured));
  measured.reset();
  EXPECT_FALSE(done);
  EXPECT_GT(ports.use_count(), 1) << "the wave goes on with the ports of the communicator that is gone";

  stopping = true;  // what the last CommDestroy of a process comes to
  monitor.join();
  EXPECT_EQ(bus.take<LinkResults>().size(), 1u);
  EXPECT_EQ(ports.use_count(), 1);
}

}  // namespace
}  // namespace falcon::control
