#include "socket/tcp_sampler.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "harness/tcp_pair.h"

namespace falcon::net::test {
namespace {

using namespace std::chrono_literals;

// The kernel counts these times in ticks of up to 10 ms, so that short bursts may come to nothing.
TEST(Sampler, CountsHowLongBytesWaitForAReceiverThatDoesNotRead) {
  const falcon::test::TcpPair pair;
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
