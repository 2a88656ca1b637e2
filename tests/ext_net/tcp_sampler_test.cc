#include "socket/tcp_sampler.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <thread>
#include <vector>

#include "base/owned.h"
#include "base/socket_address.h"

namespace falcon::net::test {
namespace {

using namespace std::chrono_literals;

struct TcpPair {
  TcpPair() {
    const FileDescriptor listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const SocketAddress any = *SocketAddress::parseNumeric("127.0.0.1:0");
    sockaddr_in bound{};
    socklen_t length = sizeof bound;
    if (bind(listener.get(), any.get(), any.length()) || listen(listener.get(), 1) ||
        getsockname(listener.get(), reinterpret_cast<sockaddr*>(&bound), &length) ||
        connect(sender.get(), reinterpret_cast<const sockaddr*>(&bound), length)) {
      throw std::runtime_error("no connection over loopback");
    }
    receiver.reset(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  }

  FileDescriptor sender{socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)}, receiver;
};

// The kernel counts these times in ticks of up to 10 ms, so that short bursts may come to nothing.
TEST(Sampler, CountsHowLongBytesWaitForAReceiverThatDoesNotRead) {
  const TcpPair pair;
  const TcpSampler sampler({pair.sender.get()});
  falconNetConnection_v1 before{}, after{};
  sampler(before);
  if (!(before.valid & FALCON_NET_LIMITS)) GTEST_SKIP() << "this kernel does not count how long bytes are under way";
  EXPECT_EQ(before.busyNanoseconds, 0u);

  const std::vector<char> bytes(1 << 16);
  while (send(pair.sender.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT) > 0) {
  }
  std::this_thread::sleep_for(100ms);
  sampler(after);
  EXPECT_GE(after.busyNanoseconds, 80'000'000u);
  EXPECT_GE(after.receiverLimitedNanoseconds, 50'000'000u);
  EXPECT_LE(after.receiverLimitedNanoseconds, after.busyNanoseconds);
  EXPECT_GT(after.segments, 0u);
}

}  // namespace
}  // namespace falcon::net::test
