// What an RDMA device counts, and what becomes of it: a tree as the kernel has it, whose counters grow.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "base/text.h"
#include "core/congestion.h"
#include "ext_net/verbs_fixture.h"
#include "verbs/port_counters.h"
#include "verbs/wait_times.h"

namespace falcon::net::test {
namespace {

constexpr std::int64_t interval = 100'000'000;  // nanoseconds between two readings

class VerbsCounters : public testing::Test {
 protected:
  VerbsCounters() {
    std::string name = testing::TempDir() + "verbs-tree-XXXXXX";
    if (!mkdtemp(name.data())) throw std::runtime_error("no folder");
    root_ = name;
    std::filesystem::copy(FALCON_VERBS_TREE "/mlx5_0", root_ / "mlx5_0", std::filesystem::copy_options::recursive);
    over_ = std::make_unique<VerbsNetwork>(fake_, root_.string());
    EXPECT_TRUE(over_->devices());
    end_.valid = FALCON_NET_LIMITS;
    judge_.judge(end_, {});
    before_ = read();
  }
  ~VerbsCounters() override { std::filesystem::remove_all(root_); }

  std::string file(const std::string& counter) const { return (root_ / "mlx5_0/ports/1" / counter).string(); }
  void grow(const std::string& counter, std::uint64_t by) {
    const auto now = leadingNumber<std::uint64_t>(readText(file(counter)));
    ASSERT_TRUE(now) << counter;
    std::ofstream(file(counter)) << *now + by << '\n';
  }
  DeviceReading read() {
    DeviceReading reading;
    reading.state.taken = taken_;
    over_->sample(0, reading.state, reading.counts);
    return reading;
  }
  /// 100 ms of sending at full speed, of which the network was waited for all the time.
  void send() {
    taken_ += interval;
    end_.taken += interval;
    end_.busyNanoseconds += interval;
    grow("counters/port_xmit_data", 250'000'000 / 4);
    grow("counters/port_xmit_packets", 62'500);
  }
  Congestion judged() {
    const DeviceReading now = read();
    const DeviceSigns signs = signsOf(before_, now);
    before_ = now;
    return judge_.judge(end_, {}, signs);
  }

  FakeVerbs fake_{{roceDevice("mlx5_0", 1)}};
  std::filesystem::path root_;
  std::unique_ptr<VerbsNetwork> over_;
  std::int64_t taken_ = interval;
  DeviceReading before_;
  falconNetConnection_v1 end_{};
  CongestionJudge judge_;
};

TEST_F(VerbsCounters, BecomeTheFieldsOfTheDevice) {
  const DeviceReading reading = read();
  EXPECT_EQ(reading.state.interfaceBytes, 4 * 3298534883328u);
  EXPECT_EQ(reading.state.transmitWait, 91822u);
  EXPECT_EQ(reading.state.congestionNotifications, 8211u) << "those that came, not those that were sent";
  EXPECT_EQ(reading.state.outOfSequence, 17u);
  EXPECT_EQ(reading.state.negativeAcknowledgements, 11u);
  EXPECT_EQ(reading.counts.packetsSent, 4026531840u);
  EXPECT_EQ(reading.counts.timeouts, 3u);
  EXPECT_EQ(reading.state.valid, FALCON_NET_INTERFACE | FALCON_NET_TRANSMIT_WAIT | FALCON_NET_CNP |
                                     FALCON_NET_OUT_OF_SEQUENCE | FALCON_NET_NAKS);
}

TEST_F(VerbsCounters, ThatADriverDoesNotHaveAreNotKnown) {
  std::filesystem::remove_all(root_ / "mlx5_0/ports/1/hw_counters");
  std::ofstream(file("counters/port_xmit_wait")) << "N/A (no PMA)\n";
  const DeviceReading reading = read();
  EXPECT_EQ(reading.state.valid, FALCON_NET_INTERFACE);
  EXPECT_EQ(reading.state.transmitWait, 0u);
  EXPECT_FALSE(signsOf(reading, reading).isKnown());
  send();
  EXPECT_EQ(judged().condition, falconNetUnknown) << "no score of what is not known";
}

TEST_F(VerbsCounters, OfADeviceThatSendsUndisturbedAreHealthy) {
  for (int i = 0; i < 20; ++i) {
    send();
    const Congestion found = judged();
    EXPECT_EQ(found.condition, falconNetHealthy);
    EXPECT_EQ(found.score, 0);
  }
}

TEST_F(VerbsCounters, WithNotificationsOfCongestionRaiseTheScore) {
  double before = 0;
  for (const unsigned notifications : {5u, 50u, 200u}) {
    send();
    grow("hw_counters/rp_cnp_handled", notifications);
    const double score = judged().score;
    EXPECT_GT(score, before) << notifications;
    before = score;
  }
  send();
  grow("hw_counters/rp_cnp_handled", 1000);
  EXPECT_EQ(judged().condition, falconNetCongested);
  send();
  EXPECT_EQ(judged().condition, falconNetHealthy) << "it is over";
}

TEST_F(VerbsCounters, OfWhatOthersSendUsSayNothingOfWhatWeSend) {
  send();
  grow("hw_counters/np_cnp_sent", 1000);
  grow("hw_counters/np_ecn_marked_roce_packets", 1000);
  grow("hw_counters/out_of_sequence", 1000);
  EXPECT_EQ(judged().score, 0);
}

TEST_F(VerbsCounters, OfAPortThatIsHeldAreSlow) {
  send();
  grow("counters/port_xmit_wait", 4 * 250'000'000 / 4);  // four ticks of five
  const Congestion found = judged();
  EXPECT_EQ(found.condition, falconNetSlow);
  EXPECT_NEAR(found.score, 0.45 * 0.8, 1e-6);
}

TEST_F(VerbsCounters, WithLossesAreCongested) {
  for (const char* counter : {"hw_counters/packet_seq_err", "hw_counters/local_ack_timeout_err"}) {
    send();
    EXPECT_EQ(judged().condition, falconNetHealthy);
    send();
    grow(counter, 70);
    EXPECT_EQ(judged().condition, falconNetCongested) << counter;
  }
}

TEST_F(VerbsCounters, OfADeviceThatIsHeldByAReceiverAreHealthy) {
  send();
  end_.receiverLimitedNanoseconds += interval;
  grow("hw_counters/rp_cnp_handled", 1000);
  EXPECT_EQ(judged().condition, falconNetHealthy);
}

TEST_F(VerbsCounters, ThatBeginAnewAreNotCounted) {
  send();
  std::ofstream(file("hw_counters/rp_cnp_handled")) << "0\n";
  std::ofstream(file("counters/port_xmit_wait")) << "0\n";
  EXPECT_EQ(judged().score, 0);
}

TEST(Rate, IsReadInGigabits) {
  EXPECT_EQ(speedOf("100 Gb/sec (4X EDR)\n"), 100'000);
  EXPECT_EQ(speedOf("2.5 Gb/sec (1X SDR)"), 2'500);
  EXPECT_EQ(speedOf(""), 0);
  EXPECT_EQ(speedOf("fast"), 0);
}

TEST(WaitTimes, AreKeptApartByWhoIsWaitedFor) {
  using For = WaitTimes::For;
  WaitTimes times;
  times.become(For::receiver, 10ns);
  times.become(For::network, 30ns);
  times.become(For::nobody, 35ns);
  times.become(For::network, 100ns);
  falconNetConnection_v1 reading{};
  reading.taken = 107;
  times.read(reading);
  EXPECT_EQ(reading.busyNanoseconds, 20u + 5 + 7);
  EXPECT_EQ(reading.receiverLimitedNanoseconds, 20u);
  EXPECT_TRUE(reading.valid & FALCON_NET_LIMITS);
}

}  // namespace
}  // namespace falcon::net::test
