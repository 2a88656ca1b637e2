// Somebody else's plugin, wrapped: it works as it does, and its connections are told of.
#include "transport/plugin/wrapped_net.h"

#include "unit/transport/plugin_world.h"

namespace falcon::transport::test {
namespace {

using falcon::test::FakeNet;

class Wrapped : public testing::TestWithParam<int> {
 protected:
  void SetUp() override { setenv("NCCL_FALCON_NET_WRAP", "1", 1); }
  void TearDown() override { unsetenv("NCCL_FALCON_NET_WRAP"); }
};
INSTANTIATE_TEST_SUITE_P(Net, Wrapped, testing::Range(6, 13));

TEST_P(Wrapped, IsToldOfWithoutItsKnowing) {
  const FakeNet fake(std::to_string(GetParam()));
  const ChunkBytes size(131072);
  std::uint64_t payload = 0;
  for (const std::size_t bytes : chunkSizes(5, 60, 131072)) payload += pluginMessageBytes(bytes);
  {
    PluginWorld world(fake, 2);
    Status sent, received;
    std::thread sender([&] { sent = sendStream(*world.ports[0], {1, 0}, 5, 60); });
    received = receiveStream(*world.ports[1], {0, 0}, 5, 60);
    sender.join();
    EXPECT_TRUE(ok(sent) && ok(received));

    const auto snapshot = world.nets.snapshot();
    ASSERT_TRUE(snapshot);
    EXPECT_EQ(snapshot->plugin, "Fake");
    ASSERT_EQ(snapshot->connections.size(), 2u);
    for (const auto& end : snapshot->connections) {
      EXPECT_EQ(end.messages, 60u);
      EXPECT_EQ(end.bytes, payload);
      EXPECT_EQ(end.requestsInFlight, 0u);
      EXPECT_FALSE(end.valid & FALCON_NET_SCORE);
      if (end.sends) {
        EXPECT_GT(end.sendWaitNanoseconds, 0u);
      }
    }
    ASSERT_EQ(snapshot->devices.size(), 1u);
    EXPECT_STREQ(snapshot->devices[0].name, "lo");
    EXPECT_EQ(snapshot->devices[0].connections, 2u);
    EXPECT_EQ(snapshot->devices[0].bytesSent, payload);

    const auto again = net::decodeNetSnapshot(net::encode(*snapshot));
    ASSERT_TRUE(again);
    EXPECT_EQ(again->plugin, snapshot->plugin);
    EXPECT_EQ(again->connections.size(), 2u);
    EXPECT_EQ(again->connections[1].bytes, payload);
  }
  const auto& counts = fake.counts();
  EXPECT_EQ(counts.connections, 2);
  EXPECT_EQ(counts.closed, 2);
  EXPECT_EQ(counts.listeners, 0);
  EXPECT_EQ(counts.registered, 0);
}

TEST(Unwrapped, PluginsTellNothing) {
  const FakeNet fake("12");
  const ChunkBytes size(131072);
  PluginWorld world(fake, 2);
  EXPECT_FALSE(world.nets.snapshot());
}

TEST(NetSnapshot, ThatIsNoneIsNotBelieved) {
  net::NetSnapshot snapshot{"some", std::vector<falconNetDevice_v1>(2), std::vector<falconNetConnection_v1>(3)};
  std::memset(snapshot.devices[0].name, 'x', sizeof snapshot.devices[0].name);
  const std::string bytes = net::encode(snapshot);
  const auto known = net::decodeNetSnapshot(bytes);
  ASSERT_TRUE(known);
  EXPECT_EQ(std::strlen(known->devices[0].name), sizeof known->devices[0].name - 1);
  for (std::size_t length = 0; length < bytes.size(); ++length)
    EXPECT_FALSE(net::decodeNetSnapshot(std::string_view(bytes).substr(0, length))) << length;
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    std::string wrong = bytes;
    wrong[at] = static_cast<char>(wrong[at] ^ 0x80);
    static_cast<void>(net::decodeNetSnapshot(wrong));  // the sanitizers look on
  }
}

}  // namespace
}  // namespace falcon::transport::test
