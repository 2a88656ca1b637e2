#include "transport/tcp_state.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <vector>

#include "base/owned.h"
#include "harness/tcp_pair.h"

namespace falcon::transport::test {
namespace {

TEST(UnderWay, IsNotKnownOfWhatIsNoTcp) {
  std::array<int, 2> pair{};
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair.data()), 0);
  const FileDescriptor one(pair[0]), other(pair[1]);
  EXPECT_FALSE(underWay(one.get()));
  EXPECT_FALSE(underWay(-1));
  EXPECT_FALSE(tcpState(one.get()));
}

TEST(UnderWay, GrowsWhileBytesAreAcknowledgedAndNotAfter) {
  const falcon::test::TcpPair connection;
  const FileDescriptor &sender = connection.sender, &receiver = connection.receiver;
  const auto idle = underWay(sender.get());
  if (!idle) GTEST_SKIP() << "this kernel does not count how long bytes are under way";

  std::vector<char> buffer(1 << 16);
  const auto until = std::chrono::steady_clock::now() + 60s;
  while (*underWay(sender.get()) == *idle && std::chrono::steady_clock::now() < until) {
    ASSERT_GT(send(sender.get(), buffer.data(), buffer.size(), MSG_NOSIGNAL | MSG_DONTWAIT), 0);
    pollfd readable{receiver.get(), POLLIN, 0};
    poll(&readable, 1, 1000);
    while (recv(receiver.get(), buffer.data(), buffer.size(), 0) > 0) {
    }
  }
  EXPECT_GT(*underWay(sender.get()), *idle);

  const auto state = tcpState(sender.get());
  ASSERT_TRUE(state);
  EXPECT_GE(state->known, TcpState::Known::limits);
  EXPECT_GE(state->busy, *underWay(sender.get()));
  EXPECT_GT(state->segments, 0u);
  EXPECT_GT(state->roundTrip, 0ns);
  EXPECT_GT(state->leastRoundTrip, 0ns);
  EXPECT_LE(state->leastRoundTrip, state->roundTrip);
  EXPECT_LT(state->roundTrip, 10s);
  EXPECT_EQ(state->marked, 0u);
  EXPECT_EQ(state->retries, 0u);
}

}  // namespace
}  // namespace falcon::transport::test
