// The metrics as text, the alerts and the dashboard: all speak of the same names, and Prometheus' own tool takes them.
#include "metrics/families.h"

#include <gtest/gtest.h>
#include <prometheus/text_serializer.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>

#include "base/escaped.h"
#include "report/json_lines.h"
#include "report/metrics_text.h"

namespace falcon::metrics {
namespace {

namespace fs = std::filesystem;

RankMetrics someRank(Rank rank, bool controller) {
  RankMetrics metrics;
  metrics.job = "a \"job\"";
  metrics.node = "node0";
  metrics.rank = rank;
  metrics.iterationSeconds = 0.5;
  CallRecord call;
  call.communicator = 26;
  call.leave = Nanoseconds(2'000'000);
  metrics.durations.add(call);
  call.leave = Nanoseconds(20'000'000'000);
  metrics.durations.add(call);
  if (controller) metrics.facts.emplace();
  if (controller) {
    auto& device = metrics.net.emplace().devices.emplace_back();
    metrics.net->plugin = "falcon-socket";
    std::strcpy(device.name, "eth0");
    device.score = 0.25;
    device.bytesSent = 1000;
  }
  return metrics;
}

std::string someText() {
  return prometheus::TextSerializer().Serialize(familiesOf({{"0", someRank(0, true)}, {"1", someRank(1, false)}}));
}

std::set<std::string> namesIn(const std::string& text) {
  std::set<std::string> names;
  static const std::regex name("nccl_falcon_[a-z_]+");
  for (std::sregex_iterator at(text.begin(), text.end(), name), end; at != end; ++at) names.insert(at->str());
  return names;
}

std::set<std::string> expressionsOf(const nlohmann::json& dashboard) {
  std::set<std::string> expressions;
  for (const auto& panel : dashboard.at("panels"))
    for (const auto& target : panel.at("targets")) expressions.insert(target.at("expr").get<std::string>());
  return expressions;
}

bool promtool(const std::string& words) {
  return std::system(("promtool " + words + " >&2").c_str()) == 0;
}
bool hasPromtool() {
  return std::system("command -v promtool >/dev/null 2>&1") == 0;
}
constexpr const char* noPromtool = "promtool is not installed (Debian package prometheus; scripts/test installs it)";

class Folder {
 public:
  Folder() { fs::create_directories(path_); }
  ~Folder() { fs::remove_all(path_); }
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(path_ / name) << text;
    return path_ / name;
  }

 private:
  const fs::path path_ = fs::temp_directory_path() / ("falcon-metrics-" + std::to_string(getpid()));
};

TEST(Families, HaveTheSamplesOfEveryRankAndThoseOfTheJobOnce) {
  const std::string text = someText();
  const auto count = [&](const std::string& part) {
    int found = 0;
    for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
    return found;
  };
  EXPECT_EQ(count("\nnccl_falcon_iteration_seconds{"), 2);
  EXPECT_EQ(count("\nnccl_falcon_failslow_active{"), 3);
  EXPECT_EQ(count("\nnccl_falcon_minor_active{"), 1);
  EXPECT_EQ(count("\nnccl_falcon_mitigations_total{"), 12);
  EXPECT_EQ(count("le=\"+Inf\"} 2\n"), 2);
  EXPECT_EQ(count("le=\"0.001\"} 0\n"), 2);
  EXPECT_EQ(count("le=\"0.003\"} 1\n"), 2);
  EXPECT_EQ(count("le=\"10\"} 1\n"), 2);
  EXPECT_EQ(count("comm_name=\"000000000000001a\""), 2 * (14 + 2));
}

TEST(Families, HaveNoSampleTwiceWhereNamesDifferInBytesThatAreNoUtf8) {
  RankMetrics rank;
  rank.job = rank.node = "\xff";
  for (CommunicatorId id : {1, 2}) {
    rank.durations.name(id, id == 1 ? "\xfe" : "\xff");
    CallRecord call;
    call.communicator = id;
    rank.durations.add(call);
  }
  const std::string text = prometheus::TextSerializer().Serialize(familiesOf({{"0", rank}}));
  EXPECT_EQ(validUtf8(text), text);
  const std::string sum = "nccl_falcon_collective_duration_seconds_sum{";
  EXPECT_NE(text.find(sum), text.npos) << text;
  EXPECT_EQ(text.find(sum), text.rfind(sum)) << text;
}

TEST(Families, OfNobodyAreEmpty) {
  EXPECT_TRUE(familiesOf({}).empty());
}

TEST(CollectiveDurations, LeaveMessagesOutAndDoNotGrowWithoutEnd) {
  report::CollectiveDurations durations;
  for (CommunicatorId id = 1; id <= 1000; ++id) {
    CallRecord call;
    call.communicator = id;
    durations.add(call);
    call.operation = Operation::send;
    durations.add(call);
  }
  EXPECT_EQ(durations.byName().size(), report::CollectiveDurations::mostCommunicators + 1);
  std::uint64_t all = 0;
  for (const auto& [name, each] : durations.byName()) all += each.count;
  EXPECT_EQ(all, 1000u);
}

TEST(MetricNames, OfDashboardAndAlertsAreExported) {
  std::set<std::string> exported = namesIn(someText());
  exported.merge(namesIn(report::metricsText({})));  // the controller's file has one more
  const auto dashboard = nlohmann::json::parse(std::ifstream(FALCON_DASHBOARD));
  std::ifstream rules(FALCON_ALERTS);
  std::string text((std::istreambuf_iterator<char>(rules)), {});
  EXPECT_FALSE(namesIn(text).empty());
  for (const std::string& expression : expressionsOf(dashboard)) text += expression + "\n";
  for (const std::string& name : namesIn(text)) EXPECT_TRUE(exported.contains(name)) << name;
  std::set<int> ids;
  for (const auto& panel : dashboard.at("panels")) {
    EXPECT_TRUE(ids.insert(panel.at("id").get<int>()).second);
    EXPECT_FALSE(panel.at("title").get<std::string>().empty());
  }
}

TEST(Promtool, TakesTheMetrics) {
  if (!hasPromtool()) GTEST_SKIP() << noPromtool;
  const Folder folder;
  EXPECT_TRUE(promtool("check metrics <" + folder.write("exported", someText())));
  report::JobMetrics metrics{.job = "a \"job\"\nof two lines", .node = "node0", .rank = 0, .iterationSeconds = 0.5};
  metrics.durations = someRank(0, true).durations.byName();
  EXPECT_TRUE(promtool("check metrics <" + folder.write("file", report::metricsText(metrics))));
  EXPECT_FALSE(promtool("check metrics <" + folder.write("wrong", "nccl_falcon_iteration_seconds{rank=0} 1\n")));
}

TEST(Promtool, TakesTheDashboardsExpressions) {
  if (!hasPromtool()) GTEST_SKIP() << noPromtool;
  const Folder folder;
  nlohmann::json rules = nlohmann::json::array();
  for (const std::string& expression : expressionsOf(nlohmann::json::parse(std::ifstream(FALCON_DASHBOARD))))
    rules.push_back({{"record", "panel:" + std::to_string(rules.size())}, {"expr", expression}});
  ASSERT_GE(rules.size(), 5u);
  const auto file = [&](const nlohmann::json& all) {
    return nlohmann::json{{"groups", {{{"name", "panels"}, {"rules", all}}}}}.dump();  // JSON is YAML
  };
  EXPECT_TRUE(promtool("check rules " + folder.write("rules.yml", file(rules))));
  rules[0]["expr"] = "sum by (job (up)";
  EXPECT_FALSE(promtool("check rules " + folder.write("wrong.yml", file(rules))));
}

}  // namespace
}  // namespace falcon::metrics
