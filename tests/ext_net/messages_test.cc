// Messages between two sound ends.
#include <sys/resource.h>

#include <filesystem>

#include "ext_net/ends.h"
#include "socket/socket_network.h"

namespace falcon::net::test {
namespace {

struct Way {
  const char* io;
  int sockets;
};

void PrintTo(const Way& way, std::ostream* out) {
  *out << way.io << " with " << way.sockets << " sockets";
}

class Messages : public testing::TestWithParam<Way> {
 protected:
  Messages() { EXPECT_TRUE(over_.devices()); }

  Setting io_{"NCCL_FALCON_NET_IO", GetParam().io};
  Setting sockets_{"NCCL_SOCKET_NTHREADS", std::to_string(GetParam().sockets)};
  Setting piece_{"NCCL_FALCON_NET_PIECE", "65536"};
  Setting interface_{"NCCL_SOCKET_IFNAME", "lo"};
  SocketNetwork over_;
};

TEST_P(Messages, OfEverySizeArriveWhole) {
  Ends ends(over_);
  unsigned seed = 0;
  for (const std::size_t size :
       {0ul, 1ul, 31ul, 32ul, 4063ul, 4064ul, 4065ul, 65535ul, 65536ul, 65537ul, 1000003ul, 20000001ul})
    ASSERT_NO_FATAL_FAILURE(expectArrivesWhole(ends, size, ++seed));
}

TEST_P(Messages, AreTakenInTheirOrderHoweverManyAreUnderWay) {
  Ends ends(over_);
  constexpr int count = 500;
  std::vector<Bytes> sent, received;
  for (int i = 0; i < count; ++i) {
    sent.push_back(patternOf(static_cast<std::size_t>(i) * 997 % 150'000, static_cast<unsigned>(i)));
    received.emplace_back(150'000);
  }
  std::vector<Request*> sends(count), receives(count);
  int sending = 0, receiving = 0, sentCount = 0, receivedCount = 0;
  int mostAtATime = 0;
  ASSERT_TRUE(waitFor(
      [&] {
        while (sending < count) {
          auto& data = sent[static_cast<std::size_t>(sending)];
          sends[static_cast<std::size_t>(sending)] = *ends.sender->start(data.data(), data.size(), nullptr);
          if (!sends[static_cast<std::size_t>(sending)]) break;
          ++sending;
        }
        mostAtATime = std::max(mostAtATime, sending - sentCount);
        // The receiver lags behind, so that pieces come for which nobody has asked yet.
        if (receiving < count && receiving < sending) {
          auto& data = received[static_cast<std::size_t>(receiving)];
          if (auto* request = *ends.receiver->start(data.data(), data.size(), nullptr))
            receives[static_cast<std::size_t>(receiving++)] = request;
        }
        std::size_t bytes = 0;
        while (sentCount < sending && *sends[static_cast<std::size_t>(sentCount)]->test(bytes)) ++sentCount;
        while (receivedCount < receiving && *receives[static_cast<std::size_t>(receivedCount)]->test(bytes)) {
          received[static_cast<std::size_t>(receivedCount)].resize(bytes);
          ++receivedCount;
        }
        return receivedCount == count && sentCount == count;
      },
      Seconds(30)));
  EXPECT_EQ(sent, received);
  EXPECT_GT(mostAtATime, 1);
  EXPECT_LE(mostAtATime, transport::net::mostRequests);
}

TEST_P(Messages, OfWhichSomeAreStillUnderWayMayBeGivenUp) {
  auto ends = std::make_unique<Ends>(over_);
  Bytes sent(50'000'000), received(50'000'000);
  ASSERT_TRUE(*ends->receiver->start(received.data(), received.size(), nullptr));
  ASSERT_TRUE(*ends->sender->start(sent.data(), sent.size(), nullptr));
  ends.reset();
  // Nobody writes to it any more.
  const Bytes before = received;
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_EQ(before, received);
}

// Nobody asks for what comes, for longer than any limit of ours: the sender waits.
TEST_P(Messages, WaitForAReceiverThatDoesNotReceive) {
  const Setting death("NCCL_FALCON_DEATH_TIMEOUT", "1s");
  Ends ends(over_);
  Bytes sent(20'000'000, std::byte{3}), received(20'000'000);
  const auto send = ends.sender->start(sent.data(), sent.size(), nullptr);
  ASSERT_TRUE(*send);
  std::size_t bytes = 0;
  EXPECT_FALSE(waitFor([&] { return !(*send)->test(bytes) || *(*send)->test(bytes); }, Seconds(3)));
  const auto receive = ends.receiver->start(received.data(), received.size(), nullptr);
  bool isSent = false, isReceived = false;
  EXPECT_TRUE(waitFor([&] {
    if (!isSent) isSent = *(*send)->test(bytes);
    if (!isReceived) isReceived = *(*receive)->test(bytes);
    return isSent && isReceived;
  }));
  EXPECT_EQ(sent, received);
}

INSTANTIATE_TEST_SUITE_P(Ways, Messages,
                         testing::Values(Way{"epoll", 1}, Way{"epoll", 4}, Way{"io_uring", 1}, Way{"io_uring", 4}),
                         [](const auto& given) {
                           return std::string(given.param.io == std::string("epoll") ? "Epoll" : "Ring") +
                                  std::to_string(given.param.sockets);
                         });

TEST(Connections, MayBeAThousand) {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  if (limit.rlim_max < 4096) GTEST_SKIP() << "the limit of open files is below 4096";
  const Setting interface("NCCL_SOCKET_IFNAME", "lo");
  SocketNetwork over;
  ASSERT_TRUE(over.devices());
  const auto open = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), std::filesystem::directory_iterator());
  };
  const auto before = open();
  {
    std::vector<std::unique_ptr<Ends>> all;
    for (int i = 0; i < 1000; ++i) {
      all.push_back(std::make_unique<Ends>(over));
      all.back()->listener.reset();
    }
    for (auto& ends : all) {
      Bytes sent = patternOf(1000, 4), received(1000);
      const auto receive = ends->receiver->start(received.data(), received.size(), nullptr);
      const auto send = ends->sender->start(sent.data(), sent.size(), nullptr);
      ASSERT_TRUE(finish(*send) && finish(*receive));
      ASSERT_EQ(sent, received);
    }
  }
  EXPECT_TRUE(waitFor([&] { return open() == before; })) << open() << " descriptors, and " << before << " before";
}

TEST(Connections, GoByIPv6WhereThatIsAskedFor) {
  const Setting family("NCCL_SOCKET_FAMILY", "AF_INET6");
  const Setting interface("NCCL_SOCKET_IFNAME", "lo");
  SocketNetwork over;
  if (!over.devices()) GTEST_SKIP() << "this host has no IPv6";
  Ends ends(over);
  EXPECT_EQ(readHandle(ends.handle.get())->address.host(), "::1");
  Bytes sent = patternOf(100'000, 1), received(100'000);
  const auto receive = ends.receiver->start(received.data(), received.size(), nullptr);
  const auto send = ends.sender->start(sent.data(), sent.size(), nullptr);
  ASSERT_TRUE(finish(*receive) && finish(*send));
  EXPECT_EQ(sent, received);
}

TEST(Devices, AreTheInterfacesThatAreNamed) {
  const Setting interface("NCCL_SOCKET_IFNAME", "=lo");
  SocketNetwork over;
  const auto devices = over.devices();
  ASSERT_TRUE(devices);
  ASSERT_EQ(devices->size(), 1u);
  EXPECT_EQ((*devices)[0].name, "lo");
  EXPECT_GT((*devices)[0].speed, 0);
}

TEST(Devices, AreAnErrorWhereNoneHasThatName) {
  const Setting interface("NCCL_SOCKET_IFNAME", "=nosuch0");
  SocketNetwork over;
  const auto devices = over.devices();
  ASSERT_FALSE(devices);
  EXPECT_NE(devices.error().message().find("NCCL_SOCKET_IFNAME==nosuch0"), std::string::npos)
      << devices.error().message();
}

}  // namespace
}  // namespace falcon::net::test
