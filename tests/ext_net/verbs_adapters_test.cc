// NCCL's calls, by every version of its interface, down to verbs; and what is told of the network meanwhile. The
// network of this program is one over a device that there is not.
#include <gmock/gmock.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/text.h"
#include "core/net_state.h"
#include "ext_net/verbs_fixture.h"
#include "transport/plugin/net_calls.h"
#include "transport/plugin/net_v10.h"
#include "transport/plugin/net_v12.h"
#include "transport/plugin/net_v8.h"

extern "C" {
extern const falcon::transport::net::PluginV8 ncclNetPlugin_v8;
extern const falcon::transport::net::PluginV9 ncclNetPlugin_v9;
extern const falcon::transport::net::PluginV10 ncclNetPlugin_v10;
extern const falcon::transport::net::PluginV11 ncclNetPlugin_v11;
extern const falcon::transport::net::PluginV12 ncclNetPlugin_v12;
extern const falconNetState_v1_t falconNetState_v1;
}

namespace falcon::net {

const char networkName[] = "falcon-verbs";

namespace test {
namespace {

std::string copyOfTree() {
  std::string name = testing::TempDir() + "verbs-tree-XXXXXX";
  if (!mkdtemp(name.data())) throw std::runtime_error("no folder");
  std::filesystem::copy(FALCON_VERBS_TREE, name, std::filesystem::copy_options::recursive);
  return name;
}

/// Of the network; removed when the program ends.
struct Tree {
  const std::string root = copyOfTree();
  ~Tree() { std::filesystem::remove_all(root); }
};
const std::string& tree() {
  static const Tree one;
  return one.root;
}

FakeVerbs& device() {
  static auto* one = new FakeVerbs({roceDevice("mlx5_0", 1)});
  return *one;
}

}  // namespace
}  // namespace test

Network& network() {
  static auto* one = new VerbsNetwork(test::device(), test::tree());
  return *one;
}

namespace test {
namespace {

using transport::net::NetCalls;
using transport::net::ResultCode;
constexpr ResultCode good = transport::net::success, badArgument = 4;
constexpr int gpu = 2;

/// The members of which the host engine has no use, alike in all versions.
struct GpuCalls {
  decltype(transport::net::PluginV8::regMrDmaBuf) regMrDmaBuf;
  decltype(transport::net::PluginV8::iflush) iflush;
};

struct Version {
  int number;
  std::unique_ptr<NetCalls> (*adapt)(const void*);
  const void* symbol;
  /// Without a logger: this program's is the one that a plugin's lines would come to, and the plugin's own.
  ResultCode (*init)(void** context);
  GpuCalls gpu;
};
void PrintTo(const Version& version, std::ostream* out) {
  *out << version.number;
}

template <class Plugin>
GpuCalls gpuCallsOf(const Plugin& plugin) {
  return {plugin.regMrDmaBuf, plugin.iflush};
}

/// A connection as NCCL makes it.
class VerbsVersion : public testing::TestWithParam<Version> {
 protected:
  void SetUp() override {
    calls_ = GetParam().adapt(GetParam().symbol);
    ASSERT_EQ(GetParam().init(&context_), good);
    char handle[transport::net::handleBytes]{};
    ASSERT_EQ(calls_->listen(context_, 0, handle, &listener_), good);
    ASSERT_TRUE(waitFor([&] {
      if (!sender_) {
        EXPECT_EQ(calls_->connect(context_, 0, handle, &sender_), good);
      }
      if (!receiver_) {
        EXPECT_EQ(calls_->accept(listener_, &receiver_), good);
      }
      return sender_ && receiver_;
    }));
    ASSERT_EQ(calls_->regMr(sender_, sent_.data(), sent_.size(), &from_), good);
  }
  void TearDown() override {
    EXPECT_EQ(calls_->deregMr(sender_, from_), good);
    EXPECT_EQ(calls_->closeSend(sender_), good);
    EXPECT_EQ(calls_->closeRecv(receiver_), good);
    EXPECT_EQ(calls_->closeListen(listener_), good);
    EXPECT_EQ(calls_->finalize(context_), good);
  }
  /// One message of all bytes.
  void move(Bytes& to, void* mark) {
    void *send = nullptr, *receive = nullptr;
    ASSERT_EQ(calls_->irecv(receiver_, to.data(), to.size(), mark, &receive), good);
    ASSERT_EQ(calls_->isend(sender_, sent_.data(), sent_.size(), from_, &send), good);
    int isSent = 0, isReceived = 0, bytes = 0;
    ASSERT_TRUE(waitFor([&] {
      if (!isSent) {
        EXPECT_EQ(calls_->test(send, &isSent, nullptr), good);
      }
      if (!isReceived) {
        EXPECT_EQ(calls_->test(receive, &isReceived, &bytes), good);
      }
      return isSent && isReceived;
    }));
    EXPECT_EQ(bytes, static_cast<int>(sent_.size()));
  }

  const Setting interface_{"NCCL_SOCKET_IFNAME", "lo"};
  std::unique_ptr<NetCalls> calls_;
  void *context_ = nullptr, *listener_ = nullptr, *sender_ = nullptr, *receiver_ = nullptr, *from_ = nullptr;
  Bytes sent_ = patternOf(100'000, 3), received_ = Bytes(100'000);
};

TEST_P(VerbsVersion, SaysWhatTheDeviceIs) {
  transport::net::DeviceProperties its;
  ASSERT_EQ(calls_->getProperties(0, its), good);
  EXPECT_STREQ(its.name, "mlx5_0");
  EXPECT_EQ(its.memory, 1 | 4);
  EXPECT_EQ(its.speed, 100'000);
  EXPECT_EQ(its.receives, 1);
}

TEST_P(VerbsVersion, MovesMemoryOfTheHost) {
  void* to = nullptr;
  ASSERT_EQ(calls_->regMr(receiver_, received_.data(), received_.size(), &to), good);
  move(received_, to);
  EXPECT_EQ(sent_, received_);
  EXPECT_EQ(calls_->deregMr(receiver_, to), good);
}

TEST_P(VerbsVersion, MovesMemoryOfAGpuAndFlushesIt) {
  void *to = nullptr, *request = nullptr;
  ASSERT_EQ(GetParam().gpu.regMrDmaBuf(receiver_, received_.data(), received_.size(), gpu, 4096, 7, &to), good);
  move(received_, to);
  EXPECT_NE(sent_, received_) << "the device holds nothing back: this test shows nothing";
  void* place = received_.data();
  int size = static_cast<int>(received_.size());
  ASSERT_EQ(GetParam().gpu.iflush(receiver_, 1, &place, &size, &to, &request), good);
  ASSERT_TRUE(request);
  int isDone = 0;
  ASSERT_TRUE(waitFor([&] {
    EXPECT_EQ(calls_->test(request, &isDone, nullptr), good);
    return isDone != 0;
  }));
  EXPECT_EQ(sent_, received_);
  EXPECT_EQ(calls_->deregMr(receiver_, to), good);
}

TEST_P(VerbsVersion, RefusesWhatTheInterfaceDoesNotAllow) {
  void *mark = nullptr, *request = nullptr;
  void* place = received_.data();
  int size = 8, negative = -1;
  const GpuCalls& its = GetParam().gpu;
  EXPECT_EQ(its.regMrDmaBuf(nullptr, place, 8, gpu, 0, 7, &mark), badArgument);
  EXPECT_EQ(its.regMrDmaBuf(receiver_, place, 8, gpu, 0, 7, nullptr), badArgument);
  EXPECT_EQ(its.iflush(nullptr, 1, &place, &size, &mark, &request), badArgument);
  EXPECT_EQ(its.iflush(receiver_, 1, &place, &size, &mark, nullptr), badArgument);
  EXPECT_EQ(its.iflush(receiver_, 2, &place, &size, &mark, &request), badArgument) << "one receive, one flush";
  EXPECT_EQ(its.iflush(receiver_, 1, &place, &negative, &mark, &request), badArgument);
}

INSTANTIATE_TEST_SUITE_P(
    Net, VerbsVersion,
    testing::Values(
        Version{8, transport::net::adaptV8, &ncclNetPlugin_v8, [](void**) { return ncclNetPlugin_v8.init(nullptr); },
                gpuCallsOf(ncclNetPlugin_v8)},
        Version{9, transport::net::adaptV9, &ncclNetPlugin_v9, [](void**) { return ncclNetPlugin_v9.init(nullptr); },
                gpuCallsOf(ncclNetPlugin_v9)},
        Version{10, transport::net::adaptV10, &ncclNetPlugin_v10,
                [](void**) { return ncclNetPlugin_v10.init(nullptr, nullptr); }, gpuCallsOf(ncclNetPlugin_v10)},
        Version{11, transport::net::adaptV11, &ncclNetPlugin_v11,
                [](void** context) { return ncclNetPlugin_v11.init(context, 1, nullptr, nullptr, nullptr); },
                gpuCallsOf(ncclNetPlugin_v11)},
        Version{12, transport::net::adaptV12, &ncclNetPlugin_v12,
                [](void** context) { return ncclNetPlugin_v12.init(context, 1, nullptr, nullptr, nullptr); },
                gpuCallsOf(ncclNetPlugin_v12)}),
    [](const auto& given) { return "V" + std::to_string(given.param.number); });

class VerbsState : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(network().devices());
    NetState::instance().setClock(clock_);
  }
  void TearDown() override { NetState::instance().setClock(SystemClock::instance()); }
  /// The next reading of the device, and of the only sender.
  void read() {
    const std::uint64_t before = device_.sequence;
    std::this_thread::sleep_for(2ms);
    clock_.advance(SystemClock::instance().now() - clock_.now());
    std::uint32_t count = 0;
    ASSERT_EQ(falconNetState_v1.devices(&device_, 1, &count), 0);
    ASSERT_GT(device_.sequence, before);
    std::vector<falconNetConnection_v1> all(8);
    ASSERT_EQ(falconNetState_v1.connections(all.data(), 8, &count), 0);
    ASSERT_EQ(count, 2u);
    sender_ = all[0].sends ? all[0] : all[1];
  }
  static void grow(const std::string& counter, std::uint64_t by) {
    const std::string file = tree() + "/mlx5_0/ports/1/" + counter;
    const auto now = *leadingNumber<std::uint64_t>(readText(file));
    std::ofstream(file) << now + by << '\n';
  }

  const Setting interface_{"NCCL_SOCKET_IFNAME", "lo"}, interval_{"NCCL_FALCON_NET_STATE_INTERVAL", "1ms"};
  ManualClock clock_;  // stands still in between: however slow the test runs, read() takes one reading
  falconNetDevice_v1 device_{};
  falconNetConnection_v1 sender_{};
};

TEST_F(VerbsState, TellsOfCongestionThatTheDeviceCounts) {
  Ends ends(network());
  Bytes data(1000);
  const Mark from(*ends.sender, data), to(*ends.receiver, data);
  Bytes room(1000);
  const Mark place(*ends.receiver, room);
  const auto send = ends.sender->start(data.data(), data.size(), from.get());
  ASSERT_NO_FATAL_FAILURE(read());
  ASSERT_NO_FATAL_FAILURE(read());
  EXPECT_EQ(sender_.condition, falconNetHealthy) << "it is the receiver that is waited for";
  EXPECT_GT(sender_.receiverLimitedNanoseconds, 0u);

  // The message is given to the device, and stays there.
  const auto posted = device().sendsOf(device().pairs()[0]);
  const auto receive = ends.receiver->start(room.data(), room.size(), place.get());
  ASSERT_TRUE(waitFor([&] {
    std::size_t bytes = 0;
    EXPECT_FALSE(*(*send)->test(bytes));
    return device().sendsOf(device().pairs()[0]) > posted;
  }));
  device().hold(true);
  ASSERT_NO_FATAL_FAILURE(read());
  ASSERT_NO_FATAL_FAILURE(read());
  EXPECT_EQ(sender_.condition, falconNetHealthy) << "nothing disturbs the device";
  grow("hw_counters/rp_cnp_handled", 10'000'000);
  ASSERT_NO_FATAL_FAILURE(read());
  EXPECT_EQ(sender_.condition, falconNetCongested);
  EXPECT_EQ(device_.condition, falconNetCongested);
  EXPECT_EQ(device_.congestionNotifications, 8211u + 10'000'000);
  EXPECT_TRUE(device_.valid & FALCON_NET_CNP);
  EXPECT_STREQ(device_.name, "mlx5_0");
  EXPECT_EQ(sender_.bytesInFlight, 1000u);
  ASSERT_NO_FATAL_FAILURE(read());
  EXPECT_EQ(sender_.condition, falconNetHealthy) << "it is over";

  device().hold(false);
  ASSERT_TRUE(finish(*send) && finish(*receive));
}

TEST_F(VerbsState, MayBeReadWhileThreadsOfTheirOwnUseTheEnds) {
  NetState::instance().setClock(SystemClock::instance());  // one reading after the other
  Ends ends(network());
  constexpr int messages = 400;
  Bytes sent = patternOf(messages * 100, 5), received(messages * 100);
  const Mark from(*ends.sender, sent), to(*ends.receiver, received);
  std::atomic<bool> isOver{false};
  const auto run = [&](Connection& end, Bytes& data, void* mark) {
    std::size_t bytes = 0;
    for (std::size_t i = 0; i < messages; ++i) {
      Request* request = nullptr;
      while (!request) request = *end.start(data.data() + i * 100, 100, mark);
      while (!*request->test(bytes)) std::this_thread::yield();
    }
  };
  std::thread sender([&] { run(*ends.sender, sent, from.get()); });
  std::thread receiver([&] { run(*ends.receiver, received, to.get()); });
  std::thread reader([&] {
    while (!isOver) static_cast<void>(NetState::instance().connections());
  });
  sender.join();
  receiver.join();
  isOver = true;
  reader.join();
  EXPECT_EQ(sent, received);
}

}  // namespace
}  // namespace test
}  // namespace falcon::net
