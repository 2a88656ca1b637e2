// A link between two network namespaces: healthy, limited alone, limited and shared, cut.
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <future>
#include <iostream>
#include <optional>

#include "core/net_state.h"
#include "ext_net/ends.h"
#include "ext_net/namespace_link.h"
#include "ext_net/packet_program.h"
#include "socket/socket_network.h"

namespace falcon::net::test {
namespace {

/// A process in a namespace, ended with this.
class Program {
 public:
  Program(const std::string& space, std::vector<std::string> words) {
    words.insert(words.begin(), {"ip", "netns", "exec", space});
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    process_ = fork();
    if (process_ != 0) return;
    const int nothing = open("/dev/null", O_RDWR);
    dup2(nothing, 1), dup2(nothing, 2);
    execvp(arguments[0], arguments.data());
    _exit(127);
  }
  ~Program() {
    kill(process_, SIGTERM);
    waitpid(process_, nullptr, 0);
  }
  Program(const Program&) = delete;

 private:
  pid_t process_;
};

std::string textOf(const std::vector<falconNetConnection_v1>& readings) {
  std::string all;
  for (const auto& its : readings)
    all += fmt::format(
        "{:.3f} ({}; rtt {:.2f} ms of {:.2f}, rate {:.1f} MB/s, again {} of {}, busy {} ms, receiver {} ms, buffer {} "
        "ms)\n",
        its.score, its.condition, static_cast<double>(its.rttNanoseconds) / 1e6,
        static_cast<double>(its.rttLeastNanoseconds) / 1e6, static_cast<double>(its.deliveryRate) / 1e6,
        its.retransmits, its.segments, its.busyNanoseconds / 1'000'000, its.receiverLimitedNanoseconds / 1'000'000,
        its.bufferLimitedNanoseconds / 1'000'000);
  return all;
}

/// The middle four fifths of what was read, for docs/net-state.md.
void tell(const std::vector<falconNetConnection_v1>& readings) {
  const auto range = [&](auto&& of) {
    std::vector<double> values;
    for (const auto& reading : readings) values.push_back(of(reading));
    std::ranges::sort(values);
    return std::pair(values.at(values.size() / 10), values.at(values.size() - 1 - values.size() / 10));
  };
  const auto score = range([](const auto& its) { return its.score; });
  const auto rate = range([](const auto& its) { return static_cast<double>(its.deliveryRate) / 1e6; });
  const auto queued = range([](const auto& its) {
    return static_cast<double>(static_cast<std::int64_t>(its.rttNanoseconds - its.rttLeastNanoseconds)) / 1e6;
  });
  const auto& first = readings.front();
  const auto& last = readings.back();
  const auto again = static_cast<double>(last.retransmits - first.retransmits);
  const auto sent = static_cast<double>(std::max<std::uint64_t>(last.segments - first.segments, 1));
  std::cout << fmt::format(
      "{:.2f} to {:.2f} score, {:.1f} to {:.1f} ms beyond the least round trip, {:.1f} to {:.1f} MB/s, {:.1f} % sent "
      "again\n",
      score.first, score.second, queued.first, queued.second, rate.first, rate.second, 100 * again / sent);
}

/// Sends over the link as fast as it goes, and reads its own state ten times a second.
class Traffic {
 public:
  /// @param duration  how long; nothing of the first second counts
  /// @param reads     for so long; then the receiver is there and takes nothing
  Traffic(const Link& link, Seconds duration, Seconds reads = Seconds(1e9)) : reads_(reads) {
    std::promise<HandleBytes> listening;
    auto heard = listening.get_future();
    std::thread receiver([&] { receive(link, listening); });
    std::thread sender([&] { send(link, heard.get(), duration); });
    sender.join();
    receiver.join();
  }

  std::vector<falconNetConnection_v1> readings;
  std::optional<Error> error;                       // of the sender
  std::chrono::steady_clock::time_point erredAt{};  // when it was told

  double medianScore() const {
    std::vector<double> scores;
    for (const auto& reading : readings) scores.push_back(reading.score);
    if (scores.empty()) return -1;
    std::nth_element(scores.begin(), scores.begin() + static_cast<std::ptrdiff_t>(scores.size() / 2), scores.end());
    return scores[scores.size() / 2];
  }
  std::string text() const { return textOf(readings); }

 private:
  static constexpr std::size_t messageBytes = 1 << 20;

  void receive(const Link& link, std::promise<HandleBytes>& listening) {
    enter(link.east);
    SocketNetwork over;
    if (!over.devices()) return;
    HandleBytes handle;
    const auto listener = over.listen(0, handle.get());
    listening.set_value(handle);
    std::unique_ptr<Connection> connection;
    if (!waitFor([&] {
          auto made = (*listener)->accept();
          if (made) connection = std::move(*made);
          return connection != nullptr;
        }))
      return;
    Bytes room(messageBytes);
    const auto begun = std::chrono::steady_clock::now();
    while (!isOver_) {
      if (std::chrono::steady_clock::now() - begun > reads_) {
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
        continue;
      }
      const auto request = connection->start(room.data(), room.size(), nullptr);
      if (!request || !finish(*request, Seconds(1e9))) return;
    }
  }
  void send(const Link& link, HandleBytes handle, Seconds duration) {
    enter(link.west);
    Network& over = network();
    if (!over.devices()) return;
    std::unique_ptr<Connection> connection;
    if (!waitFor([&] {
          auto made = over.connect(0, handle.get());
          if (made) connection = std::move(*made);
          return connection != nullptr;
        }))
      return;
    const Bytes data(messageBytes, std::byte{1});
    const auto begun = std::chrono::steady_clock::now();
    auto nextReading = begun + std::chrono::milliseconds(100);
    std::vector<Request*> requests;
    std::size_t bytes = 0;
    for (auto now = begun; now - begun < duration; now = std::chrono::steady_clock::now()) {
      while (requests.size() < 8) {
        const auto started = connection->start(const_cast<std::byte*>(data.data()), data.size(), nullptr);
        if (!started || !*started) break;
        requests.push_back(*started);
      }
      while (!requests.empty()) {
        const auto tested = requests.front()->test(bytes);
        if (!tested) {
          error = tested.error();
          erredAt = std::chrono::steady_clock::now();
          isOver_ = true;
          return;
        }
        if (!*tested) break;
        requests.erase(requests.begin());
      }
      if (now > nextReading) {
        nextReading = now + std::chrono::milliseconds(110);
        for (const auto& reading : NetState::instance().connections())
          if (reading.sends && now - begun > std::chrono::seconds(1)) readings.push_back(reading);
      }
      std::this_thread::yield();
    }
    isOver_ = true;
  }

  const Seconds reads_;
  std::atomic<bool> isOver_{false};
};

class Congestion : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (!link_.isThere) GTEST_SKIP() << "network namespaces cannot be made here: they want root";
    std::ifstream file("/proc/sys/net/ipv4/tcp_available_congestion_control");
    const std::string all{std::istreambuf_iterator<char>(file), {}};
    if (all.find(GetParam()) == std::string::npos) GTEST_SKIP() << "this kernel has no BBR";
  }
  Setting control_{"NCCL_FALCON_NET_CONGESTION_CONTROL", GetParam()};
  Link link_;
};
INSTANTIATE_TEST_SUITE_P(Tcp, Congestion, testing::Values("cubic", "bbr"));

TEST_P(Congestion, IsNoneOnAHealthyLinkUnderFullLoad) {
  const Traffic traffic(link_, Seconds(4));
  ASSERT_GT(traffic.readings.size(), 10u);
  tell(traffic.readings);
  EXPECT_LT(traffic.medianScore(), 0.1) << traffic.text();
  const auto high = std::count_if(traffic.readings.begin(), traffic.readings.end(),
                                  [](const auto& reading) { return reading.score >= 0.1; });
  EXPECT_LE(high, static_cast<std::ptrdiff_t>(traffic.readings.size() / 5)) << traffic.text();
}

TEST_P(Congestion, IsSlownessOnlyWhereALinkIsLimitedAlone) {
  link_.limit("100mbit");
  const Traffic traffic(link_, Seconds(4));
  ASSERT_GT(traffic.readings.size(), 10u);
  tell(traffic.readings);
  const auto are = [&](int condition) {
    return std::count_if(traffic.readings.begin(), traffic.readings.end(),
                         [&](const auto& reading) { return reading.condition == condition; });
  };
  EXPECT_EQ(are(falconNetCongested), 0) << traffic.text();
  EXPECT_GE(are(falconNetSlow), static_cast<std::ptrdiff_t>(traffic.readings.size() * 3 / 4)) << traffic.text();
}

TEST_P(Congestion, IsThereWhereOthersShareTheLink) {
  if (!runs("which iperf3")) GTEST_SKIP() << "iperf3 is not installed";
  link_.limit("100mbit");
  const Program server(link_.east, {"iperf3", "-s"});
  const auto has = [](const std::string& space, const std::string& sockets, int fewest) {
    return waitFor([&] {
      return runs("test $(ip netns exec " + space + " ss -Htn " + sockets + " | wc -l) -ge " + std::to_string(fewest));
    });
  };
  ASSERT_TRUE(has(link_.east, "state listening 'sport = :5201'", 1));
  const Program client(link_.west, {"iperf3", "-c", "10.77.0.2", "-P", "3", "-t", "60"});
  ASSERT_TRUE(has(link_.west, "state established 'dport = :5201'", 4));  // its own, and three that send
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  const Traffic traffic(link_, Seconds(4));
  ASSERT_GT(traffic.readings.size(), 10u);
  tell(traffic.readings);
  EXPECT_GE(traffic.medianScore(), 0.5) << traffic.text();
}

/// After two seconds of health that is done to a share of the packets. Readings from a second later on, when those of
/// health are no longer among the last ten; nothing where the kernel takes no such programs.
std::optional<std::vector<falconNetConnection_v1>> readingsUnder(PacketProgram::Deed deed, double share,
                                                                 const Link& link) {
  const PacketProgram program(deed, share);
  if (!program.isThere()) return std::nullopt;
  std::atomic<std::int64_t> since{0};
  auto meddling = std::async(std::launch::async, [&] {
    std::this_thread::sleep_for(std::chrono::seconds(2));
    ASSERT_TRUE(link.run(program));
    since = SystemClock::instance().now().count();
  });
  Traffic traffic(link, Seconds(5));
  meddling.wait();
  std::erase_if(traffic.readings, [&](const auto& reading) { return reading.taken < since + 1'200'000'000; });
  return std::move(traffic.readings);
}

void expectCongested(const std::vector<falconNetConnection_v1>& readings) {
  ASSERT_GT(readings.size(), 5u);
  tell(readings);
  const auto congested = std::count_if(readings.begin(), readings.end(),
                                       [](const auto& reading) { return reading.condition == falconNetCongested; });
  EXPECT_GE(congested, static_cast<std::ptrdiff_t>(readings.size() * 3 / 4)) << textOf(readings);
}

// Of packets that the host makes, which network cards cut into many segments.
TEST_P(Congestion, IsThereWherePacketsAreLost) {
  const auto readings = readingsUnder(PacketProgram::Deed::drop, 0.1, link_);
  if (!readings) GTEST_SKIP() << "this kernel takes no packet programs";
  expectCongested(*readings);
}

TEST_P(Congestion, IsThereWhereSwitchesMark) {
  ASSERT_TRUE(link_.allowMarks());
  const auto readings = readingsUnder(PacketProgram::Deed::mark, 0.1, link_);
  if (!readings) GTEST_SKIP() << "this kernel takes no packet programs";
  expectCongested(*readings);
}

/// The link is cut after so many seconds; the receiver reads for so long. Told within five seconds, and not before.
void expectTheCutIsTold(double after, Seconds reads) {
  const Link link;
  if (!link.isThere) GTEST_SKIP() << "network namespaces cannot be made here: they want root";
  using Moment = std::chrono::steady_clock::time_point;
  Moment before{}, cutAt{};
  auto cutting = std::async(std::launch::async, [&] {
    std::this_thread::sleep_for(Seconds(after));
    before = std::chrono::steady_clock::now();
    link.cut();
    cutAt = std::chrono::steady_clock::now();
  });
  const Traffic traffic(link, Seconds(after + 16), reads);
  cutting.wait();
  ASSERT_TRUE(traffic.error);
  EXPECT_EQ(traffic.error->code(), ErrorCode::remote) << traffic.error->message();
  EXPECT_GT(traffic.erredAt, before) << "a receiver that is there may take nothing: " << traffic.error->message();
  EXPECT_LT(Seconds(traffic.erredAt - cutAt).count(), 5 + 1);  // and what a busy machine takes
}

TEST(CutLink, IsARemoteErrorWithinFiveSeconds) {
  expectTheCutIsTold(1, Seconds(1e9));
}

// Nothing is in flight, and the kernel asks for room more and more seldom.
TEST(CutLink, IsARemoteErrorWithinFiveSecondsAlsoWhereTheReceiverTookNothingForLong) {
  expectTheCutIsTold(9, Seconds(1));
}

}  // namespace
}  // namespace falcon::net::test
