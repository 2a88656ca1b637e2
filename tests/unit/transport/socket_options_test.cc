// Which connections are asked whether the host at the other end still answers.
#include "transport/socket_options.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "base/socket_address.h"

namespace falcon::transport {
namespace {

int option(const FileDescriptor& socket, int level, int name) {
  int value = -1;
  socklen_t length = sizeof value;
  getsockopt(socket.get(), level, name, &value, &length);
  return value;
}

FileDescriptor boundTo(const char* host) {
  const SocketAddress address = *SocketAddress::parse(host);
  FileDescriptor socket(::socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
  EXPECT_EQ(bind(socket.get(), address.get(), address.length()), 0) << host;
  return socket;
}

/// A connection from one address to another. The peer waits in the listener's queue.
struct LocalConnection {
  LocalConnection(const char* from, const char* to) : listener(boundTo(to)), socket(boundTo(from)) {
    EXPECT_EQ(listen(listener.get(), 1), 0);
    sockaddr_storage name{};
    socklen_t length = sizeof name;
    getsockname(listener.get(), reinterpret_cast<sockaddr*>(&name), &length);
    EXPECT_EQ(connect(socket.get(), reinterpret_cast<sockaddr*>(&name), length), 0);
  }
  FileDescriptor listener, socket;
};

class SocketOptions : public testing::TestWithParam<Purpose> {};
INSTANTIATE_TEST_SUITE_P(Of, SocketOptions,
                         testing::Values(Purpose::rendezvous, Purpose::communicator, Purpose::data, Purpose::bus,
                                         Purpose::pulse, Purpose::window));

TEST_P(SocketOptions, AskWhetherAnotherHostAnswers) {
  const LocalConnection between("127.0.0.2:0", "127.0.0.1:0");
  prepareSocket(between.socket.get(), GetParam());
  EXPECT_EQ(option(between.socket, SOL_SOCKET, SO_KEEPALIVE), 1);
}

TEST_P(SocketOptions, DoNotAskWhetherThisHostAnswers) {
  const LocalConnection inside("127.0.0.1:0", "127.0.0.1:0");
  prepareSocket(inside.socket.get(), GetParam());
  EXPECT_EQ(option(inside.socket, SOL_SOCKET, SO_KEEPALIVE), 0);
}

// Silence is told from computing where next to nothing is sent; on the bus it is that somebody does not read.
TEST(SocketOptionsOfSilence, GiveUpOnBytesThatNobodyAcknowledgesOfAnotherHostOnly) {
  for (const Purpose purpose : {Purpose::rendezvous, Purpose::pulse}) {
    const LocalConnection between("127.0.0.2:0", "127.0.0.1:0"), inside("127.0.0.1:0", "127.0.0.1:0");
    for (const LocalConnection* each : {&between, &inside}) prepareSocket(each->socket.get(), purpose);
    EXPECT_GT(option(between.socket, IPPROTO_TCP, TCP_USER_TIMEOUT), 0);
    EXPECT_EQ(option(inside.socket, IPPROTO_TCP, TCP_USER_TIMEOUT), 0);
  }
}

}  // namespace
}  // namespace falcon::transport
