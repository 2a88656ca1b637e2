// The injected slow link.
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "transport/link_throttle.h"
#include "unit/transport/ports_world.h"

namespace falcon::transport::test {
namespace {

TEST(ThrottledRate, TheLastLineOfTheLinkCounts) {
  EXPECT_EQ(throttledRate("", {0, 1}), std::nullopt);
  EXPECT_EQ(throttledRate("0 1 1e6\n", {0, 1}), 1e6);
  EXPECT_EQ(throttledRate("0 1 1000000", {1, 0}), std::nullopt);
  EXPECT_EQ(throttledRate("# a comment\n\n0 1 5\n2 3 7 # slow\n0 1 6\n", {0, 1}), 6.0);
  EXPECT_EQ(throttledRate("# a comment\n\n0 1 5\n2 3 7 # slow\n0 1 6\n", {2, 3}), 7.0);
  EXPECT_EQ(throttledRate("0 1 5\n0 1 0\n", {0, 1}), std::nullopt);
  EXPECT_EQ(throttledRate("0 1 -5\n", {0, 1}), std::nullopt);
  EXPECT_EQ(throttledRate("0 1 fast\n0 x 3\n#0 1 4\n", {0, 1}), std::nullopt);
}

class ThrottleFile {
 public:
  ThrottleFile() {
    const int file = mkstemp(path_);
    EXPECT_GE(file, 0);
    ::close(file);
  }
  ~ThrottleFile() {
    std::filesystem::remove(path_);
    for (const Link& link : {Link{0, 1}, Link{1, 0}, Link{3, 4}}) std::filesystem::remove(linkCountsFile(path_, link));
  }
  void write(const std::string& text) { std::ofstream(path_) << text; }
  const char* path() const { return path_; }

 private:
  char path_[64] = "/tmp/falcon_throttle_XXXXXX";
};

TEST(LinkThrottle, LetsTheRatePassWhateverIsAskedFor) {
  for (const double rate : {2e5, 1e7, 3e9}) {
    for (const std::size_t wanted : {std::size_t{1}, std::size_t{4096}, std::size_t{100000}, std::size_t{1} << 28}) {
      ThrottleFile file;
      file.write(fmt::format("0 1 {}\n", rate));
      ManualClock clock;
      clock.advance(1s);
      LinkThrottle throttle(file.path(), {0, 1}, clock);
      double sent = 0;
      for (int i = 0; i < 10000; ++i) {
        clock.advance(100us);
        while (const std::size_t granted = throttle.take(wanted)) {
          ASSERT_LE(granted, wanted);
          throttle.giveBack(granted / 2);
          sent += static_cast<double>(granted - granted / 2);
          if (granted < wanted || wanted == 1) break;
        }
      }
      EXPECT_LE(sent, rate * 1.01 + 8192) << rate << " " << wanted;
      if (wanted > 1) {
        EXPECT_GE(sent, rate * 0.95 - 8192) << rate << " " << wanted;
      }
    }
  }
}

TEST(LinkThrottle, FollowsTheFile) {
  ThrottleFile file;
  ManualClock clock;
  LinkThrottle throttle(file.path(), {3, 4}, clock);
  EXPECT_EQ(throttle.take(1 << 30), 1u << 30) << "no line yet";
  file.write("3 4 1000000\n");
  clock.advance(100ms);
  EXPECT_EQ(throttle.take(1 << 30), 0u) << "tokens start at nothing";
  clock.advance(10ms);
  EXPECT_NEAR(static_cast<double>(throttle.take(1 << 30)), 10000, 1);
  file.write("3 4 2000000\n#");
  clock.advance(100ms);
  EXPECT_EQ(throttle.take(1 << 30), 0u);
  clock.advance(10ms);
  EXPECT_NEAR(static_cast<double>(throttle.take(1 << 30)), 20000, 1);
  std::filesystem::remove(file.path());
  clock.advance(100ms);
  EXPECT_EQ(throttle.take(1 << 30), 1u << 30) << "relieved";
}

TEST(LinkThrottle, TellsWhatWentOverTheLink) {
  ThrottleFile file;
  ManualClock clock;
  LinkThrottle throttle(file.path(), {3, 4}, clock);
  const std::string counts = linkCountsFile(file.path(), {3, 4});
  const auto told = [&] {
    clock.advance(100ms);
    throttle.take(0);
    LinkCounts read;
    std::ifstream(counts) >> read.bytes >> read.held;
    return std::pair(read.bytes, read.held);
  };
  EXPECT_EQ(throttle.take(5000), 5000u);
  throttle.giveBack(2000);
  EXPECT_EQ(told(), std::pair(std::uint64_t{3000}, std::uint64_t{0}));
  file.write("3 4 1000000\n");
  clock.advance(100ms);
  EXPECT_EQ(throttle.take(5000), 0u);
  clock.advance(1ms);
  EXPECT_EQ(throttle.take(5000), 0u);
  clock.advance(5ms);
  EXPECT_EQ(throttle.take(5000), 5000u);
  EXPECT_EQ(told(), std::pair(std::uint64_t{8000}, std::uint64_t{2}));
}

TEST(LinkThrottle, SlowsThatLinkOfTheSocketPortsOnly) {
  const ChunkBytes size(65536);
  ThrottleFile file;
  file.write("0 1 4000000\n");
  setenv("NCCL_FALCON_INJECT_LINK_FILE", file.path(), 1);
  World world(2, Medium::socket);
  const auto timed = [&](Rank from, int channel) {
    const auto start = std::chrono::steady_clock::now();
    Status received;
    std::thread receiver([&] { received = receiveStream(*world.ports[1 - from], {from, channel}, 7, 60); });
    EXPECT_TRUE(ok(sendStream(*world.ports[from], {1 - from, channel}, 7, 60)));
    receiver.join();
    EXPECT_TRUE(ok(received));
    return seconds(std::chrono::steady_clock::now() - start);
  };
  double bytes = 0;
  for (const std::size_t chunk : chunkSizes(7, 60, 65536)) bytes += static_cast<double>(chunk);
  EXPECT_GE(timed(0, 0), (bytes - 50000) / 4e6);
  // Two channels share the link; neither knows how long the other was at it before.
  const auto both = std::chrono::steady_clock::now();
  std::thread other([&] { timed(0, 2); });
  timed(0, 1);
  other.join();
  EXPECT_GE(seconds(std::chrono::steady_clock::now() - both), (2 * bytes - 50000) / 4e6);
  // The link's own account, as of its first send after a look at the file is due.
  const auto counts = [&](Rank from) {
    std::this_thread::sleep_for(150ms);
    timed(from, 0);
    LinkCounts read;
    std::ifstream(linkCountsFile(file.path(), {from, 1 - from})) >> read.bytes >> read.held;
    return read;
  };
  EXPECT_GT(counts(0).held, 0u);
  timed(1, 0);
  const LinkCounts otherWay = counts(1);
  EXPECT_GE(static_cast<double>(otherWay.bytes), bytes);
  EXPECT_EQ(otherWay.held, 0u);
  file.write("");
  const LinkCounts whenRelieved = counts(0), later = counts(0);
  EXPECT_GT(later.bytes, whenRelieved.bytes);
  EXPECT_EQ(later.held, whenRelieved.held);
  unsetenv("NCCL_FALCON_INJECT_LINK_FILE");
}

}  // namespace
}  // namespace falcon::transport::test
