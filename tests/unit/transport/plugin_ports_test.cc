// Chunks through a net plugin: every version, and all that a plugin may do wrong.
#include <gmock/gmock.h>

#include "harness/in_time.h"
#include "unit/transport/plugin_world.h"

namespace falcon::transport::test {
namespace {

using falcon::test::FakeNet;
using testing::HasSubstr;

/// Runs them side by side, and gives their outcomes.
std::vector<Status> together(const std::vector<std::function<Status()>>& works) {
  std::vector<Status> results(works.size());
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < works.size(); ++i) threads.emplace_back([&, i] { results[i] = works[i](); });
  for (std::thread& thread : threads) thread.join();
  return results;
}

class PluginStreams : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Net, PluginStreams, testing::Range(6, 13));

TEST_P(PluginStreams, KeepOrderAndContentBothWaysOnManyChannels) {
  const FakeNet fake(std::to_string(GetParam()));
  const ChunkBytes size(131072);
  std::uint64_t payload = 0;
  for (const std::size_t bytes : chunkSizes(1, 60, 131072)) payload += bytes;
  {
    PluginWorld world(fake, 3);
    std::vector<std::function<Status()>> works;
    for (Rank from = 0; from < 3; ++from)
      for (Rank to = 0; to < 3; ++to) {
        if (to == from) continue;
        for (const PortKey& key : {PortKey{to, 0}, PortKey{to, 3, Lane::tree}}) {
          const auto stream = static_cast<std::uint64_t>(1 + from * 3 + to);
          works.emplace_back([&world, from, key, stream] { return sendStream(*world.ports[from], key, stream, 60); });
          works.emplace_back([&world, from, to, key, stream] {
            return receiveStream(*world.ports[to], {from, key.channel, key.lane}, stream, 60);
          });
        }
      }
    for (const Status& result : together(works)) EXPECT_TRUE(ok(result));
    EXPECT_EQ(fake.counts().messages, 12 * 60);
    EXPECT_GE(world.ports[0]->bytesSentTo(1), payload);
  }
  const auto& counts = fake.counts();
  EXPECT_EQ(counts.sharedByThreads, 0);
  EXPECT_EQ(counts.tooManyRequests, 0);
  EXPECT_EQ(counts.leftOver, 0);
  EXPECT_EQ(counts.connections, 24);
  EXPECT_EQ(counts.closed, 24);
  EXPECT_EQ(counts.listeners, 0);
  EXPECT_EQ(counts.registered, 0);
  EXPECT_EQ(counts.finalizes, GetParam() >= 11 ? 3 : 0);
}

TEST(PluginPorts, RanksThatShareMemoryDoNotUseIt) {
  const FakeNet fake("12");
  const ChunkBytes size(4096);
  PluginWorld world(fake, 2, Medium::sharedMemory);
  for (const Status& result : together({[&] {
                                          return sendStream(*world.ports[0], {1, 0}, 1, 20);
                                        },
                                        [&] {
                                          return receiveStream(*world.ports[1], {0, 0}, 1, 20);
                                        },
                                        [&] {
                                          return sendStream(*world.ports[0], {0, 1}, 2, 5);
                                        },
                                        [&] {
                                          return receiveStream(*world.ports[0], {0, 1}, 2, 5);
                                        }}))
    EXPECT_TRUE(ok(result));
  EXPECT_EQ(fake.counts().messages, 0);
}

// The algorithms rest on that: all ranks of a ring send first.
TEST(PluginPorts, ASenderHasCreditBeforeAnybodyListens) {
  const FakeNet fake("12");
  const ChunkBytes size(4096);
  PluginWorld world(fake, 2);
  SendPort& out = **world.ports[0]->openSend({1, 0});
  for (std::size_t chunk = 0; chunk < chunkSlots; ++chunk) {
    ASSERT_EQ(out.acquire()->size(), 4096U);
    out.commit(4096);
  }
  EXPECT_TRUE(out.acquire()->empty());
  EXPECT_FALSE(out.flushed());
}

struct Trouble {
  const char* version;
  const char* fault;
  const char* sender;    ///< in its error
  const char* receiver;  ///< in its error; null: it gets none by itself
};
void PrintTo(const Trouble& trouble, std::ostream* out) {
  *out << trouble.fault << " of version " << trouble.version;
}

// So that a sender is still at it when its receiver fails.
constexpr int tooManyForTheKernel = 20'000;

class PluginTrouble : public testing::TestWithParam<Trouble> {};

/// How long it takes until each end that gets an error by itself has it.
std::chrono::duration<double> timeUntilTroubleIsTold(const Trouble& trouble) {
  const auto [version, fault, senders, receivers] = trouble;
  const FakeNet fake(version, fault);
  const ChunkBytes size(4096);
  setenv("NCCL_FALCON_INIT_TIMEOUT", "2s", 1);
  PluginWorld world(fake, 2);
  const auto expectError = [&](const Status& status, const char* said) {
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code(), ErrorCode::remote);
    EXPECT_THAT(status.error().message(), HasSubstr(said));
    EXPECT_THAT(status.error().message(), HasSubstr("Fake"));
    EXPECT_THAT(status.error().message(), HasSubstr("rank "));
  };
  // An end that has failed leaves, as it would with its communicator; then the other may fail by that.
  std::vector<Status> results;
  const auto time = falcon::test::timeOf([&, senders = senders, receivers = receivers] {
    results = together({[&] {
                          const Status status = sendStream(*world.ports[0], {1, 0}, 1, tooManyForTheKernel);
                          if (senders) world.ports[0].reset();
                          return status;
                        },
                        [&] {
                          const Status status = receiveStream(*world.ports[1], {0, 0}, 1, tooManyForTheKernel);
                          if (receivers) world.ports[1].reset();
                          return status;
                        }});
  });
  if (senders) expectError(results[0], senders);
  if (receivers) expectError(results[1], receivers);
  EXPECT_FALSE(results[0]);
  EXPECT_FALSE(results[1]);
  unsetenv("NCCL_FALCON_INIT_TIMEOUT");
  return time;
}

TEST_P(PluginTrouble, IsAnErrorThatNamesPluginPeerAndFunctionWithinFiveSeconds) {
  EXPECT_TRUE(falcon::test::isInTime(5s, [] { return timeUntilTroubleIsTold(GetParam()); }));
}

INSTANTIATE_TEST_SUITE_P(
    Net, PluginTrouble,
    testing::Values(Trouble{"6", "cut:5", "returned 6 (remote error)", "test of a receive for rank 0"},
                    Trouble{"12", "cut:5", "returned 6 (remote error)", "test of a receive for rank 0"},
                    Trouble{"12", "isend:7", "isend for rank 1", "test of a receive for rank 0"},
                    Trouble{"9", "irecv", nullptr, "irecv for rank 0"},
                    Trouble{"12", "connect", "connect for rank 1", nullptr},
                    Trouble{"12", "connect-never", "no connection with rank 1", "no connection with rank 0"},
                    Trouble{"12", "accept", nullptr, "accept for rank 0"},
                    Trouble{"10", "regMr", "regMr for rank 1", "regMr for rank 0"},
                    Trouble{"12", "magic:4", nullptr, "rank 0 (127.0.0.1"},
                    Trouble{"12", "garble:4", nullptr, "does not belong to this job"}));

// Each rank has one thread for both ways, and first looks for what comes.
TEST(PluginPorts, APluginMayBlockInAcceptUntilSomebodyConnects) {
  const FakeNet fake("6", "accept-blocks");
  const ChunkBytes size(4096);
  PluginWorld world(fake, 2);
  const auto exchange = [&](Rank self) -> Status {
    SendPort& out = **world.ports[self]->openSend({1 - self, 0});
    ReceivePort& in = **world.ports[self]->openReceive({1 - self, 0});
    if (const auto slot = out.acquire(); !slot) return slot.error();
    out.commit(100);
    const auto waiter = makeWaiter();
    bool received = false;
    return until(
        *waiter,
        [&]() -> Result<bool> {
          const auto there = in.ready();
          if (!there) return there;
          received = *there;
          const auto moved = out.progress();
          if (!moved) return moved;
          return received && out.flushed();
        },
        [&] { return received ? out.waitSource() : in.waitSource(); });
  };
  for (const Status& result : together({[&] { return exchange(0); }, [&] { return exchange(1); }}))
    EXPECT_TRUE(ok(result));
}

// NCCL asks for sizes to flush a GPU's memory only: Google's Fast Socket tells none.
TEST(PluginPorts, APluginMayTellNoSizes) {
  const FakeNet fake("6", "no-sizes");
  const ChunkBytes size(4096);
  PluginWorld world(fake, 2);
  for (const Status& result : together({[&] {
                                          return sendStream(*world.ports[0], {1, 0}, 1, 50);
                                        },
                                        [&] {
                                          return receiveStream(*world.ports[1], {0, 0}, 1, 50);
                                        }}))
    EXPECT_TRUE(ok(result));
  EXPECT_GE(fake.counts().messages, 50);
}

// Who cannot listen says so itself; the sender hears of it by the communicator.
TEST(PluginPorts, WhoCannotListenFailsAtOnce) {
  for (const auto& [fault, said] : {std::pair{"listen", "listen for rank 0 (127.0.0.1"},
                                    std::pair{"listen-null", "gives nothing to listen with"}}) {
    const FakeNet fake("8", fault);
    const ChunkBytes size(4096);
    PluginWorld world(fake, 2);
    const auto ready = (*world.ports[1]->openReceive({0, 0}))->ready();
    ASSERT_FALSE(ready);
    EXPECT_THAT(ready.error().message(), HasSubstr(said));
    EXPECT_EQ((*world.ports[1]->openReceive({0, 0}))->ready().error().message(), ready.error().message());
  }
}

}  // namespace
}  // namespace falcon::transport::test
