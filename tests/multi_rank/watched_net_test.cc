// `falcon status --net`: what a job's net plugins tell of the network.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "multi_rank/watched_job.h"

namespace falcon::tests {
namespace {

using nlohmann::json;
using testing::HasSubstr;

/// For what is started while it lives.
class Setting {
 public:
  Setting(const char* name, const char* value) : name_(name) { setenv(name, value, 1); }
  ~Setting() { unsetenv(name_); }
  Setting(const Setting&) = delete;

 private:
  const char* name_;
};

struct OverThePlugin {
  const Setting plugin{"NCCL_NET_PLUGIN", FALCON_NET_SOCKET};
  const Setting memory{"NCCL_SHM_DISABLE", "1"};
};

/// Inside of this machine, whatever interfaces other tests have made.
struct OverTheLoopback : OverThePlugin {
  const Setting loopback{"NCCL_SOCKET_IFNAME", "lo"};
};

/// The ranks of a job that tell something.
json tellersOf(const std::string& job) {
  const Said said({"status", "--net", "--json", job});
  if (!said.json.is_array() || said.json.empty()) return json::array();
  return said.json.at(0).at("ranks");
}

TEST(StatusNet, ShowsWhatThePluginOfEachRankTells) {
  const OverTheLoopback settings;
  TemporaryFolder folder;
  WatchedJob job("until", {folder.file("end")});
  ASSERT_TRUE(eventually([&] {
    const json ranks = tellersOf(job.name);
    return ranks.size() == 4 && std::all_of(ranks.begin(), ranks.end(), [](const json& rank) {
             return !rank.at("devices").empty() && rank.at("devices").at(0).at("bytes_sent") > 0;
           });
  })) << job.job.errors();
  for (const json& rank : tellersOf(job.name)) {
    EXPECT_EQ(rank.at("plugin"), "falcon-socket");
    EXPECT_FALSE(rank.at("connections").empty());
    for (const json& connection : rank.at("connections")) EXPECT_TRUE(connection.at("peer").is_string());
  }
  const Said said({"status", "--net", job.name});
  EXPECT_THAT(said.output, HasSubstr("falcon-socket"));
  EXPECT_THAT(said.output, HasSubstr("MB sent"));
  std::ofstream(folder.file("end")) << "now";
  EXPECT_EQ(job.job.wait(), 0) << job.job.errors();
  const std::string left = "/dev/shm/nccl-falcon-" + std::to_string(::getuid()) + "/" + job.name + "/rank-0.net";
  EXPECT_FALSE(std::filesystem::exists(left));
}

TEST(StatusNet, SaysWhereNobodyTellsAnything) {
  const Setting plugin("NCCL_NET_PLUGIN", "none");
  TemporaryFolder folder;
  WatchedJob job("until", {folder.file("end")});
  ASSERT_TRUE(eventually([&] {
    return Said({"status", "--net", job.name}).output.find("4 ranks tell nothing") != std::string::npos;
  })) << job.job.errors();
  std::ofstream(folder.file("end")) << "now";
  EXPECT_EQ(job.job.wait(), 0) << job.job.errors();
}

/// The highest score of any connection of the job.
double highestScore(const std::string& job) {
  double highest = 0;
  for (const json& rank : tellersOf(job))
    for (const json& connection : rank.at("connections"))
      if (connection.at("score").is_number()) highest = std::max(highest, connection.at("score").get<double>());
  return highest;
}

TEST(StatusNet, ShowsALimitedLinkWithinASecond) {
  if (const auto reason = whyNoNodes()) GTEST_SKIP() << *reason;
  const OverThePlugin settings;
  const std::string name = "falcon-net-" + std::to_string(::getpid());
  Started job(falconCommand({"run", "-n", "2", "--nodes", "2", "--", falconCommand({})[0], "perf", "all_reduce", "-b",
                             "4M", "-e", "4M", "-n", "1000000"}),
              {{"NCCL_FALCON_JOB", name}, {"NCCL_FALCON_VALIDATE", "off"}});
  ASSERT_TRUE(eventually([&] { return tellersOf(name).size() == 2; })) << job.errors();
  std::this_thread::sleep_for(std::chrono::seconds(2));
  // The file is written twice a second. Of a healthy link a reading may be high, but few are.
  std::vector<double> healthy;
  for (int readings = 0; readings < 5; ++readings) {
    healthy.push_back(highestScore(name));
    std::this_thread::sleep_for(std::chrono::milliseconds(600));
  }
  std::sort(healthy.begin(), healthy.end());
  EXPECT_LT(healthy[healthy.size() / 2], 0.1);
  Started injection(
      falconCommand({"inject", "slow-link", "--job", name, "--from", "0", "--to", "1", "--rate", "50M", "--for", "6"}));
  ASSERT_TRUE(eventually([&] { return injection.errors().find("in force\n") != std::string::npos; }))
      << injection.errors();
  const auto begun = std::chrono::steady_clock::now();
  bool isSeen = false;
  while (!isSeen && std::chrono::steady_clock::now() - begun < std::chrono::seconds(5))
    isSeen = highestScore(name) >= 0.1;
  EXPECT_TRUE(isSeen);
  // The file is written twice a second, and read by a program that is started for it.
  EXPECT_LT(std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count(), 2.5);
  injection.wait();
  job.signal(SIGTERM);
  job.wait();
  std::filesystem::remove_all("/dev/shm/nccl-falcon-" + std::to_string(::getuid()) + "/" + name);
}

}  // namespace
}  // namespace falcon::tests
