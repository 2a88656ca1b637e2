#include "transport/pacing.h"

#include <gtest/gtest.h>
#include <netinet/tcp.h>

#include <array>

#include "base/owned.h"
#include "base/socket_address.h"

namespace falcon::transport::test {
namespace {

constexpr std::size_t small = 8, large = 1 << 20;

std::string congestionControlOf(const FileDescriptor& socket) {
  std::array<char, 32> name{};
  socklen_t length = name.size() - 1;
  if (getsockopt(socket.get(), IPPROTO_TCP, TCP_CONGESTION, name.data(), &length) != 0) return "?";
  return name.data();
}

/// A socket that is connected to 127.0.0.1.
struct Connection {
  FileDescriptor connecting, accepted;

  Connection(const char* fromHost, const std::string& congestionControl) {
    FileDescriptor listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const SocketAddress address = *SocketAddress::parseNumeric("127.0.0.1:0");
    EXPECT_EQ(bind(listener.get(), address.get(), address.length()), 0);
    EXPECT_EQ(listen(listener.get(), 1), 0);
    sockaddr_in bound{};
    socklen_t length = sizeof bound;
    EXPECT_EQ(getsockname(listener.get(), reinterpret_cast<sockaddr*>(&bound), &length), 0);
    connecting = FileDescriptor(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    known = setsockopt(connecting.get(), IPPROTO_TCP, TCP_CONGESTION, congestionControl.data(),
                       static_cast<socklen_t>(congestionControl.size())) == 0;
    const SocketAddress from = *SocketAddress::parseNumeric(std::string(fromHost) + ":0");
    EXPECT_EQ(bind(connecting.get(), from.get(), from.length()), 0);
    EXPECT_EQ(connect(connecting.get(), reinterpret_cast<const sockaddr*>(&bound), length), 0);
    accepted = FileDescriptor(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    EXPECT_GE(accepted.get(), 0);
  }

  bool known = false;  ///< the kernel has this congestion control
};

TEST(Pacing, IsForMessagesThatAreSmall) {
  const Connection connection("127.0.0.1", "bbr");
  if (!connection.known) GTEST_SKIP() << "this kernel has no BBR";
  Pacing pacing(connection.connecting.get());
  pacing.sending(small);
  EXPECT_EQ(congestionControlOf(connection.connecting), "bbr");
  pacing.sending(large);
  EXPECT_EQ(congestionControlOf(connection.connecting), "reno");
  // A small one now and then changes nothing; many in a row do.
  for (unsigned i = 1; i < Pacing::smallUntilPaced; ++i) pacing.sending(small);
  pacing.sending(large);
  for (unsigned i = 1; i < Pacing::smallUntilPaced; ++i) pacing.sending(small);
  EXPECT_EQ(congestionControlOf(connection.connecting), "reno");
  pacing.sending(small);
  EXPECT_EQ(congestionControlOf(connection.connecting), "bbr");
  pacing.sending(large);
  EXPECT_EQ(congestionControlOf(connection.connecting), "reno");
}

TEST(Pacing, BetweenAddressesTheSystemsCongestionControlStays) {
  const Connection connection("127.0.0.2", "bbr");
  const std::string before = congestionControlOf(connection.connecting);
  Pacing pacing(connection.connecting.get());
  pacing.sending(large);
  EXPECT_EQ(congestionControlOf(connection.connecting), before);
}

TEST(Pacing, WhatDoesNotPaceStays) {
  const Connection connection("127.0.0.1", "cubic");
  ASSERT_TRUE(connection.known);
  Pacing pacing(connection.connecting.get());
  pacing.sending(large);
  EXPECT_EQ(congestionControlOf(connection.connecting), "cubic");
}

}  // namespace
}  // namespace falcon::transport::test
