// Jobs whose rank or link is really throttled: by the quota of its cgroup, by a token bucket on its interface. The
// culprit must be among the suspects, before any validation, and the suspects at most one group.
//
// FALCON_SUSPECT_RUNS: runs of each case; without it one of one case a layout, within a minute. FALCON_SUSPECT_FIRST:
// the number of the first; other culprits and other strengths in every run.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "base/event.h"
#include "inject/processor_use.h"
#include "multi_rank/run_harness.h"
#include "topology/layout.h"

namespace falcon::tests {
namespace {

using nlohmann::json;

struct Case {
  const char* name;
  topology::Layout layout;
  int nodes;
  CulpritKind kind;
  bool always;  ///< also where nobody asks for many runs
};

/// Data-parallel, pipeline and tensor groups.
std::vector<std::vector<Rank>> groupsOf(const topology::Layout& layout) {
  std::set<std::vector<Rank>> groups;
  for (Rank rank = 0; rank < layout.size(); ++rank)
    for (const auto& group : {layout.dataGroup(rank), layout.pipelineGroup(rank), layout.tensorGroup(rank)})
      groups.insert(group);
  return {groups.begin(), groups.end()};
}

bool contains(const std::vector<Rank>& group, Rank rank) {
  return std::find(group.begin(), group.end(), rank) != group.end();
}

/// Another one in every run. Links go between nodes, where the job's largest messages do.
Culprit culpritOf(const Case& job, int run) {
  const int size = job.layout.size();
  if (job.kind == CulpritKind::rank) return {CulpritKind::rank, run % size, {}, false};
  const Rank from = run % size;
  const auto group = job.layout.dataSize > 1 ? job.layout.dataGroup(from) : job.layout.pipelineGroup(from);
  const auto at = static_cast<std::size_t>(std::find(group.begin(), group.end(), from) - group.begin());
  return {CulpritKind::link, -1, {from, group[(at + 1) % group.size()]}, false};
}

std::vector<json> eventsIn(const std::string& file) {
  std::vector<json> all;
  for (const std::string& line : linesOf(contentOf(file)))
    if (json event = json::parse(line, nullptr, false); event.is_object()) all.push_back(std::move(event));
  return all;
}
/// The first event of the kind; null until there is one.
json firstOf(const std::string& kind, const std::vector<json>& events) {
  for (const json& event : events)
    if (event.at("kind") == kind) return event;
  return {};
}
std::string textOf(const std::vector<json>& events) {
  std::string text;
  for (const json& event : events)
    text += event.at("kind").get<std::string>() + ": " + event.at("text").get<std::string>() + "\n";
  return text;
}

/// Cores that this machine uses for other things than the job's ranks, on average since the object was made.
class OtherLoad {
 public:
  explicit OtherLoad(const tools::JobDescription& job) : busy_(busyTicks()), start_(std::chrono::steady_clock::now()) {
    for (const auto& rank : job.ranks) ranks_.emplace_back(rank.process);
  }
  double cores() const {
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start_;
    double cores = (busyTicks() - busy_) / static_cast<double>(::sysconf(_SC_CLK_TCK)) / elapsed.count();
    for (const auto& rank : ranks_) cores -= rank.cores().value_or(0);
    return cores;
  }

 private:
  static double busyTicks() {
    std::istringstream stat(contentOf("/proc/stat"));
    std::string cpu;
    double user = 0, nice = 0, system = 0;
    stat >> cpu >> user >> nice >> system;
    return user + nice + system;
  }

  const double busy_;
  const std::chrono::steady_clock::time_point start_;
  std::vector<tools::ProcessorUse> ranks_;
};

class ThrottledJob {
 public:
  ThrottledJob(const Case& job, int run)
      : train_(command(job), {{"NCCL_FALCON", "1"},
                              {"NCCL_FALCON_EVENTS", folder_.file("events")},
                              {"NCCL_FALCON_JOB",
                               "suspects-" + std::to_string(getpid()) + "-" + job.name + "-" + std::to_string(run)},
                              {"NCCL_FALCON_VALIDATE", "off"}}) {}

  json find(const std::string& kind) const { return firstOf(kind, eventsIn(folder_.file("events"))); }
  std::string story() const { return textOf(eventsIn(folder_.file("events"))) + train_.errors(); }
  tools::JobDescription description() const { return waitForDescription(folder_.file("job")); }
  std::size_t iterations() const { return linesOf(contentOf(folder_.file("log"))).size(); }
  bool ended() { return !train_.running(); }

  std::vector<std::string> inject(const Culprit& culprit, double factor) const {
    const std::string strength = std::to_string(factor);
    std::vector<std::string> words{"inject", "slow-rank", "--rank", std::to_string(culprit.rank), "--factor", strength};
    if (culprit.kind == CulpritKind::link)
      words = {"inject",     "slow-link",
               "--from",     std::to_string(culprit.link.from),
               "--to",       std::to_string(culprit.link.to),
               "--slowdown", strength};
    words.insert(words.end(), {"--describe", folder_.file("job"), "--for", "60", "--json"});
    return falconCommand(words);
  }

 private:
  std::vector<std::string> command(const Case& job) const {
    const auto text = [](int number) { return std::to_string(number); };
    const auto trainer = std::filesystem::path(falconCommand({})[0]).parent_path() / "falcon-train";
    return falconCommand({"run",
                          "-n",
                          text(job.layout.size()),
                          "--nodes",
                          text(job.nodes),
                          "--cgroups",
                          "--describe",
                          folder_.file("job"),
                          "--",
                          trainer,
                          "--dp",
                          text(job.layout.dataSize),
                          "--pp",
                          text(job.layout.pipelineSize),
                          "--tp",
                          text(job.layout.tensorSize),
                          "--micro-batches",
                          "8",
                          "--iterations",
                          "1000000",
                          "--duration",
                          "120",
                          "--log",
                          folder_.file("log"),
                          "--quiet"});
  }

  TemporaryFolder folder_;
  Started train_;
};

class Suspects : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "a sanitizer slows all ranks, and what it slows most is not what is throttled";
#endif
    if (const auto reason = whyNoNodes()) GTEST_SKIP() << *reason;
    if (const auto reason = whyNoCgroups()) GTEST_SKIP() << *reason;
  }

  /// False: other programs took the machine meanwhile, which slows all ranks alike and more than we do; or gave it
  /// back.
  void throttle(int run, bool& counts) {
    const Case& shape = GetParam();
    const Culprit culprit = culpritOf(shape, run);
    const double factor = std::array{2.0, 2.5, 1.7}[static_cast<std::size_t>(run) % 3];
    SCOPED_TRACE(testing::Message() << shape.name << ", run " << run << ": " << nameOf(culprit) << ", " << factor);
    ThrottledJob job(shape, run);
    ASSERT_TRUE(eventually([&] { return job.iterations() > 0 || job.ended(); })) << job.story();
    const OtherLoad before(job.description());
    ASSERT_TRUE(eventually([&] { return !job.find("baseline-taken").is_null() || job.ended(); }));
    const std::size_t healthy = job.iterations() + 10;
    ASSERT_TRUE(eventually([&] { return job.iterations() >= healthy || job.ended(); })) << job.story();
    const double otherCores = before.cores();
    const OtherLoad during(job.description());
    counts = job.find("suspicion").is_null();
    if (!counts) return;  // something else has slowed it
    Started injection(job.inject(culprit, factor));
    const bool answered =
        eventually([&] { return !job.find("suspicion").is_null() || job.ended() || !injection.running(); });
    counts = std::abs(during.cores() - otherCores) < 0.3;
    if (!counts) return;
    ASSERT_TRUE(answered) << job.story();
    const json suspicion = job.find("suspicion");
    ASSERT_FALSE(suspicion.is_null()) << job.story() << injection.errors();
    injection.signal(SIGTERM);
    injection.wait();
    counts = injection.errors().find("not injected: ended by signal") == std::string::npos;
    if (!counts) return;  // suspected before it was in force
    const json outcome = json::parse(injection.output(), nullptr, false);
    ASSERT_TRUE(outcome.is_object()) << injection.output() << injection.errors() << job.story();
    const double lasted = outcome["ended"]["monotonic"].get<double>() - outcome["started"]["monotonic"].get<double>();
    if (lasted < 0.5) {  // something else had slowed the job before it was in force
      counts = false;
      return;
    }
    ASSERT_TRUE(outcome.at("effective").get<bool>()) << outcome;

    std::set<Rank> all;
    bool found = false;
    for (const json& suspect : suspicion.at("suspects")) {
      const auto ranks = suspect.at("ranks").get<std::vector<Rank>>();
      all.insert(ranks.begin(), ranks.end());
      found = found || (culprit.kind == CulpritKind::rank
                            ? contains(ranks, culprit.rank)
                            : contains(ranks, culprit.link.from) && contains(ranks, culprit.link.to));
    }
    EXPECT_TRUE(found) << suspicion << "\n" << job.story();
    const auto groups = groupsOf(shape.layout);
    EXPECT_TRUE(std::any_of(groups.begin(), groups.end(),
                            [&](const auto& group) {
                              return std::all_of(all.begin(), all.end(),
                                                 [&](Rank rank) { return contains(group, rank); });
                            }))
        << suspicion << "\n"
        << job.story();
  }
};

TEST_P(Suspects, HaveTheCulpritAmongThem) {
  const auto number = [](const char* name, int otherwise) {
    const char* text = std::getenv(name);
    return text ? std::atoi(text) : otherwise;
  };
  const int first = number("FALCON_SUSPECT_FIRST", 0), asked = number("FALCON_SUSPECT_RUNS", 0);
  if (asked == 0 && !GetParam().always) GTEST_SKIP() << "one case a layout where FALCON_SUSPECT_RUNS asks for no more";
  const int attempts = asked == 0 ? 2 : 5, runs = std::max(1, asked);
  int counted = 0;
  for (int run = first; run < first + runs && !HasFailure(); ++run) {
    bool counts = false;
    for (int attempt = 0; attempt < attempts && !counts && !HasFailure(); ++attempt) throttle(run, counts);
    counted += counts;
  }
  std::cout << "culprits that were suspected, and one group at most: " << counted - HasFailure() << " of " << runs
            << " runs\n";
  if (counted < runs && !HasFailure()) GTEST_SKIP() << "other programs come and go on this machine";
}

TEST(SlowOutsideOfCollectives, IsSaidToBeSoWithTheNameOfTheCode) {
  TemporaryFolder folder;
  Started job(falconCommand({"run", "-n", "4", "--", probe()}),
              {{"NCCL_FALCON", "1"},
               {"NCCL_FALCON_EVENTS", folder.file("events")},
               {"NCCL_FALCON_JOB", "loading-" + std::to_string(getpid())},
               {"NCCL_FALCON_TRAP_BUDGET", "100"}});
  const auto said = [&] { return firstOf("verdict", eventsIn(folder.file("events"))); };
  ASSERT_TRUE(eventually([&] { return !said().is_null() || !job.running(); }))
      << textOf(eventsIn(folder.file("events")));
  job.signal(SIGTERM);
  job.wait();
  const std::string story = textOf(eventsIn(folder.file("events"))) + job.errors();
  ASSERT_FALSE(said().is_null()) << story;
  EXPECT_EQ(said().at("culprit").value("rank", -1), 2) << story;
  EXPECT_NE(said().at("text").get<std::string>().find("\"data\", outside of all collectives"), std::string::npos)
      << story;
  EXPECT_EQ(said().at("ranges").at(0).at("name"), "data") << story;
}

INSTANTIATE_TEST_SUITE_P(Layouts, Suspects,
                         testing::Values(Case{"DataSlowRank", {4, 1, 1}, 4, CulpritKind::rank, true},
                                         Case{"DataSlowLink", {4, 1, 1}, 4, CulpritKind::link, false},
                                         Case{"DataPipelineSlowRank", {2, 2, 1}, 2, CulpritKind::rank, false},
                                         Case{"DataPipelineSlowLink", {2, 2, 1}, 2, CulpritKind::link, true},
                                         Case{"TensorPipelineSlowRank", {1, 2, 2}, 2, CulpritKind::rank, true},
                                         Case{"TensorPipelineSlowLink", {1, 2, 2}, 2, CulpritKind::link, false}),
                         [](const auto& cases) { return std::string(cases.param.name); });

}  // namespace
}  // namespace falcon::tests
