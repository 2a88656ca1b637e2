// The library as NCCL loads it, by every version of the interface that it exports.
#include <dlfcn.h>
#include <gmock/gmock.h>

#include <functional>
#include <set>
#include <sstream>

#include "ext_net/ends.h"
#include "transport/plugin/net_calls.h"
#include "transport/plugin/net_check.h"

namespace falcon::net::test {
namespace {

using transport::net::DeviceProperties;
using transport::net::NetCalls;
using transport::net::netVersions;
using transport::net::ResultCode;

constexpr ResultCode invalidArgument = 4, remoteError = 6;

struct Plugin {
  const char* name;
  const char* title;
  const char* file;
};
/// All that are built here. The first ones can be used wherever there is a network.
constexpr Plugin plugins[] = {
    {"falcon-socket", "Socket", FALCON_NET_SOCKET},
#ifdef FALCON_NET_UCX
    {"falcon-ucx", "Ucx", FALCON_NET_UCX},
#endif
#ifdef FALCON_NET_VERBS
    {"falcon-verbs", "Verbs", FALCON_NET_VERBS},
#endif
};
#ifdef FALCON_NET_UCX
constexpr std::size_t usable = 2;
#else
constexpr std::size_t usable = 1;
#endif

void* opened(const Plugin& plugin) {
  void* const library = dlopen(plugin.file, RTLD_NOW | RTLD_LOCAL);
  EXPECT_NE(library, nullptr) << dlerror();
  return library;
}
bool isOverUcx(const Plugin& plugin) {
  return std::string(plugin.title) == "Ucx";
}

std::string outputOf(const std::string& command) {
  FILE* pipe = popen(command.c_str(), "r");
  if (!pipe) throw std::runtime_error("cannot run " + command);
  std::string text;
  char block[4096];
  for (std::size_t got; (got = fread(block, 1, sizeof block, pipe)) > 0;) text.append(block, got);
  if (pclose(pipe) != 0) throw std::runtime_error(command + " failed");
  return text;
}

class Library : public testing::TestWithParam<Plugin> {};
INSTANTIATE_TEST_SUITE_P(Net, Library, testing::ValuesIn(plugins),
                         [](const auto& given) { return std::string(given.param.title); });

TEST_P(Library, ExportsWhatNcclLooksForAndTheStateAndNothingElse) {
  std::istringstream words(outputOf(std::string("nm -D --defined-only ") + GetParam().file));
  std::set<std::string> names;
  for (std::string address, kind, name; words >> address >> kind >> name;) names.insert(name);
  EXPECT_THAT(names, testing::UnorderedElementsAre("ncclNetPlugin_v8", "ncclNetPlugin_v9", "ncclNetPlugin_v10",
                                                   "ncclNetPlugin_v11", "ncclNetPlugin_v12", "falconNetState_v1"));
}

TEST_P(Library, NeedsOnlyTheCLibraryAndWhatItIsNamedAfter) {
  if (std::string(FALCON_SANITIZE) != "") GTEST_SKIP() << "sanitizer builds need their run-time";
  std::set<std::string> allowed = {"libc.so.6",       "libm.so.6",  "libdl.so.2",
                                   "libpthread.so.0", "librt.so.1", "ld-linux-x86-64.so.2"};
  if (isOverUcx(GetParam())) allowed.insert({"libucp.so.0", "libucs.so.0"});
  std::istringstream lines(outputOf(std::string("readelf -dW ") + GetParam().file));
  int needed = 0;
  for (std::string line; std::getline(lines, line);) {
    if (line.find("(NEEDED)") == std::string::npos) continue;
    const auto open = line.find('['), close = line.find(']');
    ++needed;
    EXPECT_TRUE(allowed.count(line.substr(open + 1, close - open - 1))) << line;
  }
  EXPECT_GT(needed, 0);
  std::istringstream words(outputOf(std::string("readelf -VW ") + GetParam().file));
  for (std::string word; words >> word;) {
    int major = 0, minor = 0;
    if (sscanf(word.c_str(), "GLIBC_%d.%d", &major, &minor) == 2) {
      EXPECT_LE(std::make_pair(major, minor), std::make_pair(2, 34)) << word;
    }
  }
}

class OfVersion : public testing::TestWithParam<std::tuple<Plugin, int>> {
 protected:
  OfVersion() {
    const std::string symbol = "ncclNetPlugin_v" + std::to_string(std::get<1>(GetParam()));
    for (const auto& version : netVersions)
      if (version.symbol == symbol) calls_ = version.adapt(dlsym(opened(plugin()), version.symbol));
  }
  const Plugin& plugin() const { return std::get<0>(GetParam()); }

  const Setting interface_{"NCCL_SOCKET_IFNAME", "lo"};
  std::unique_ptr<NetCalls> calls_;
};
INSTANTIATE_TEST_SUITE_P(Net, OfVersion,
                         testing::Combine(testing::ValuesIn(plugins, plugins + usable), testing::Range(8, 13)),
                         [](const auto& given) {
                           return std::get<0>(given.param).title + ("V" + std::to_string(std::get<1>(given.param)));
                         });

/// What NCCL does with a network for one connection of one direction, as its net transport does it: a row a step, in
/// its order. Retried as it retries: a step is called until it says that it is done.
class StockCalls {
 public:
  StockCalls(const NetCalls& calls, std::size_t messages, std::size_t bytes)
      : calls_(calls),
        messages_(messages),
        bytes_(bytes),
        sent_(patternOf(messages * bytes, 7)),
        got_(messages * bytes) {}

  struct Row {
    const char* step;
    std::function<bool()> call;
  };
  std::vector<Row> table() {
    return {
        {"init", [&] { return good(calls_.init(1, &context_)); }},
        {"devices", [&] { return good(calls_.devices(&devices_)) && devices_ > 0; }},
        {"getProperties (topology)", [&] { return properties(); }},
        {"listen", [&] { return good(calls_.listen(context_, 0, handle_, &listener_)) && listener_; }},
        {"getProperties (receiving proxy)", [&] { return properties(); }},
        {"connect, accept", [&] { return meet(); }},
        {"closeListen", [&] { return good(calls_.closeListen(listener_)); }},
        {"regMr (sender)", [&] { return good(calls_.regMr(sender_, sent_.data(), sent_.size(), &sentMark_)); }},
        {"regMr (receiver)", [&] { return good(calls_.regMr(receiver_, got_.data(), got_.size(), &gotMark_)); }},
        {"irecv, isend, test", [&] { return pump(); }},
        {"deregMr (sender)", [&] { return good(calls_.deregMr(sender_, sentMark_)); }},
        {"closeSend", [&] { return good(calls_.closeSend(sender_)); }},
        {"deregMr (receiver)", [&] { return good(calls_.deregMr(receiver_, gotMark_)); }},
        {"closeRecv", [&] { return good(calls_.closeRecv(receiver_)); }},
        {"finalize", [&] { return good(calls_.finalize(context_)); }},
    };
  }
  bool allCame() const { return got_ == sent_; }
  ResultCode last() const { return last_; }

 private:
  bool good(ResultCode result) {
    last_ = result;
    return result == transport::net::success;
  }
  bool properties() {
    DeviceProperties its;
    if (!good(calls_.getProperties(0, its))) return false;
    const auto objection = transport::net::objectionTo(its, 0, bytes_);
    EXPECT_FALSE(objection) << *objection;
    return !objection;
  }
  bool meet() {
    if (!sender_ && !good(calls_.connect(context_, 0, handle_, &sender_))) return false;
    if (!receiver_ && !good(calls_.accept(listener_, &receiver_))) return false;
    return sender_ && receiver_;
  }
  /// As many receives as a connection holds are posted ahead; requests are tested in their order.
  bool pump() {
    for (; posted_ < messages_ && posted_ < received_ + transport::net::mostRequests; ++posted_) {
      void*& request = receives_[posted_ % transport::net::mostRequests];
      request = reinterpret_cast<void*>(1);  // NCCL's hint: it does not want to know when it is done
      if (!good(calls_.irecv(receiver_, got_.data() + posted_ * bytes_, bytes_, gotMark_, &request))) return false;
      if (!request) break;
    }
    for (; begun_ < messages_ && begun_ < done_ + transport::net::mostRequests; ++begun_) {
      void*& request = sends_[begun_ % transport::net::mostRequests];
      if (!good(calls_.isend(sender_, sent_.data() + begun_ * bytes_, bytes_, sentMark_, &request))) return false;
      if (!request) break;
    }
    int finished = 0, size = 0;
    for (; done_ < begun_; ++done_) {
      if (!good(calls_.test(sends_[done_ % transport::net::mostRequests], &finished, nullptr))) return false;
      if (!finished) break;
    }
    for (; received_ < posted_; ++received_) {
      if (!good(calls_.test(receives_[received_ % transport::net::mostRequests], &finished, &size))) return false;
      if (!finished) break;
      EXPECT_EQ(static_cast<std::size_t>(size), bytes_);
    }
    return received_ == messages_ && done_ == messages_;
  }

  const NetCalls& calls_;
  const std::size_t messages_, bytes_;
  Bytes sent_, got_;
  ResultCode last_ = 0;
  void* context_ = nullptr;
  int devices_ = 0;
  char handle_[transport::net::handleBytes]{};
  void *listener_ = nullptr, *sender_ = nullptr, *receiver_ = nullptr;
  void *sentMark_ = nullptr, *gotMark_ = nullptr;
  std::array<void*, transport::net::mostRequests> sends_{}, receives_{};
  std::size_t posted_ = 0, begun_ = 0, done_ = 0, received_ = 0;
};

TEST_P(OfVersion, TheCallsThatNcclMakesGoWellInItsOrder) {
  ASSERT_TRUE(calls_->missing().empty());
  EXPECT_STREQ(calls_->name(), plugin().name);
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{8192}, std::size_t{1} << 20}) {
    StockCalls stock(*calls_, 100, bytes);
    for (const auto& row : stock.table()) {
      bool failed = false;
      const bool done = waitFor([&] {
        const bool isDone = row.call();
        failed = stock.last() != transport::net::success;
        return isDone || failed;
      });
      ASSERT_TRUE(done && !failed) << row.step << " of messages of " << bytes << " bytes: result " << stock.last();
    }
    EXPECT_TRUE(stock.allCame()) << bytes;
  }
}

TEST_P(OfVersion, MistakesAreErrorsAndNoCrash) {
  void* context = nullptr;
  ASSERT_EQ(calls_->init(1, &context), transport::net::success);
  int count = 0;
  ASSERT_EQ(calls_->devices(&count), transport::net::success);
  DeviceProperties properties;
  char handle[transport::net::handleBytes]{};
  void* place = nullptr;
  for (const int device : {-1, count, 1 << 30}) {
    EXPECT_EQ(calls_->getProperties(device, properties), invalidArgument);
    EXPECT_EQ(calls_->listen(context, device, handle, &place), invalidArgument);
    EXPECT_EQ(calls_->connect(context, device, handle, &place), invalidArgument);
  }
  EXPECT_EQ(calls_->connect(context, 0, handle, &place), invalidArgument);  // of zeros
  EXPECT_EQ(calls_->connect(context, 0, nullptr, &place), invalidArgument);
  EXPECT_EQ(calls_->listen(context, 0, nullptr, &place), invalidArgument);
  EXPECT_EQ(calls_->accept(nullptr, &place), invalidArgument);
  EXPECT_EQ(calls_->isend(nullptr, handle, 1, nullptr, &place), invalidArgument);
  EXPECT_EQ(calls_->irecv(nullptr, handle, 1, nullptr, &place), invalidArgument);
  EXPECT_EQ(calls_->test(nullptr, &count, nullptr), invalidArgument);
  EXPECT_EQ(calls_->devices(nullptr), invalidArgument);
  EXPECT_EQ(calls_->closeSend(nullptr), transport::net::success);
  EXPECT_EQ(calls_->closeListen(nullptr), transport::net::success);
}

const falconNetState_v1_t& state() {
  return *static_cast<const falconNetState_v1_t*>(dlsym(opened(plugins[0]), FALCON_NET_STATE_SYMBOL));
}

TEST(State, IsToldOfConnectionsThatAreOpen) {
  const Setting interface("NCCL_SOCKET_IFNAME", "lo"), interval("NCCL_FALCON_NET_STATE_INTERVAL", "1ms");
  const auto calls = transport::net::adaptV12(dlsym(opened(plugins[0]), "ncclNetPlugin_v12"));
  EXPECT_STREQ(state().plugin, "falcon-socket");
  StockCalls stock(*calls, 200, 100'000);
  for (const auto& row : stock.table()) {
    if (row.step == std::string("deregMr (sender)")) {
      falconNetConnection_v1 ends[8]{};
      std::uint32_t count = 0;
      ASSERT_EQ(state().connections(ends, 8, &count), 0);
      ASSERT_EQ(count, 2u);
      for (const auto& end : {ends[0], ends[1]}) {
        EXPECT_EQ(end.bytes, 20'000'000u);
        EXPECT_EQ(end.messages, 200u);
        EXPECT_EQ(end.requestsInFlight, 0u);
        EXPECT_EQ(end.bytesInFlight, 0u);
        EXPECT_GT(end.sequence, 0u);
        EXPECT_EQ(std::string(end.peer).substr(0, 10), "127.0.0.1:");
        if (!end.sends) continue;
        EXPECT_TRUE(end.valid & FALCON_NET_SEND_WAIT);
        EXPECT_TRUE(end.valid & FALCON_NET_RTT);
        EXPECT_GT(end.segments, 0u);
      }
      falconNetDevice_v1 device{};
      ASSERT_EQ(state().devices(&device, 1, &count), 0);
      EXPECT_EQ(count, 1u);
      EXPECT_STREQ(device.name, "lo");
      EXPECT_EQ(device.connections, 2u);
      EXPECT_GE(device.bytesSent, 20'000'000u);
    }
    ASSERT_TRUE(waitFor(row.call)) << row.step;
  }
  std::uint32_t count = 7;
  EXPECT_EQ(state().connections(nullptr, 0, &count), 0);
  EXPECT_EQ(count, 0u);
}

TEST(State, IsNotTakenAnewWithinTheInterval) {
  const Setting interface("NCCL_SOCKET_IFNAME", "lo"), interval("NCCL_FALCON_NET_STATE_INTERVAL", "1h");
  const auto calls = transport::net::adaptV12(dlsym(opened(plugins[0]), "ncclNetPlugin_v12"));
  std::uint32_t count = 0;
  falconNetDevice_v1 first{}, second{};
  ASSERT_EQ(state().devices(&first, 1, &count), 0);
  ASSERT_EQ(state().devices(&second, 1, &count), 0);
  EXPECT_EQ(first.sequence, second.sequence);
}

TEST(State, WithoutAPlaceForItIsAnError) {
  std::uint32_t count = 7;
  EXPECT_EQ(state().connections(nullptr, 1, &count), invalidArgument);
  EXPECT_EQ(state().devices(nullptr, 0, nullptr), invalidArgument);
  EXPECT_EQ(count, 7u);
}

}  // namespace
}  // namespace falcon::net::test
