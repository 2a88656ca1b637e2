// Jobs whose rank or link is really throttled: by the quota of its cgroup, by a token bucket on its interface. The
// culprit must be among the suspects, before any validation, and the suspects at most one group.
//
// FALCON_SUSPECT_RUNS: runs of each case; without it one of one case a layout, within a minute. FALCON_SUSPECT_FIRST:
// the number of the first; other culprits and other strengths in every run.
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <set>

#include "inject/other_load.h"
#include "multi_rank/trained_job.h"

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

class Suspects : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    if (const auto reason = whyNoTrainedJob()) GTEST_SKIP() << *reason;
  }

  // What is suspected before the injection is in force is a false alarm, whatever else the machine does. An onset of
  // which nobody is suspected is none: all ranks alike may get less of the machine.
  void throttle(int run) {
    const Case& shape = GetParam();
    const Culprit culprit = culpritOf(shape, run);
    const double factor = std::array{2.0, 2.5, 1.7}[static_cast<std::size_t>(run) % 3];
    SCOPED_TRACE(testing::Message() << shape.name << ", run " << run << ": " << nameOf(culprit) << ", " << factor);
    TrainedJob job({shape.layout, shape.nodes}, std::string(shape.name) + "-" + std::to_string(run),
                   {{"NCCL_FALCON_VALIDATE", "off"}});
    ASSERT_TRUE(job.eventually([&] { return !job.iterations().empty(); })) << job.story();
    tools::OtherLoad others(job.description());
    ASSERT_TRUE(job.eventually([&] { return !job.find("baseline-taken").is_null(); })) << job.story();
    const std::size_t healthy = job.iterations().size() + 10;
    ASSERT_TRUE(job.eventually([&] { return job.iterations().size() >= healthy; })) << job.story();
    const double otherCores = others.cores();
    ASSERT_TRUE(job.find("suspicion").is_null())
        << "nothing was injected yet; other programs used " << otherCores << " cores\n"
        << job.story();
    Started injection(job.injectCommand(culprit, factor, 60));
    const bool suspected = job.eventually([&] { return !job.find("suspicion").is_null() || !injection.running(); });
    SCOPED_TRACE(testing::Message() << "other programs used " << otherCores << " cores before the injection, "
                                    << others.cores() << " since\n"
                                    << job.story());
    const json suspicion = job.find("suspicion");
    ASSERT_TRUE(suspected && !suspicion.is_null()) << injection.errors();
    injection.signal(SIGTERM);
    injection.wait();
    const json outcome = json::parse(injection.output(), nullptr, false);
    ASSERT_TRUE(outcome.is_object()) << "suspected before anything was injected; " << injection.errors();
    ASSERT_GE(suspicion.at("time_s"), outcome.at("started").at("monotonic")) << "nothing was injected yet";
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
    EXPECT_TRUE(found) << suspicion;
    const auto groups = groupsOf(shape.layout);
    EXPECT_TRUE(std::any_of(groups.begin(), groups.end(), [&](const auto& group) {
      return std::all_of(all.begin(), all.end(), [&](Rank rank) { return contains(group, rank); });
    })) << suspicion;
  }
};

TEST_P(Suspects, HaveTheCulpritAmongThem) {
  const auto number = [](const char* name, int otherwise) {
    const char* text = std::getenv(name);
    return text ? std::atoi(text) : otherwise;
  };
  const int first = number("FALCON_SUSPECT_FIRST", 0), asked = number("FALCON_SUSPECT_RUNS", 0);
  if (asked == 0 && !GetParam().always) GTEST_SKIP() << "one case a layout where FALCON_SUSPECT_RUNS asks for no more";
  for (int run = first; run < first + std::max(1, asked) && !HasFailure(); ++run) throttle(run);
}

/// Four ranks of loading_probe with these words, until the event was said.
class LoadingJob {
 public:
  LoadingJob(const std::vector<std::string>& words, const std::string& event) {
    auto command = falconCommand({"run", "-n", "4", "--", probe()});
    command.insert(command.end(), words.begin(), words.end());
    Started job(std::move(command), {{"NCCL_FALCON", "1"},
                                     {"NCCL_FALCON_EVENTS", folder_.file("events")},
                                     {"NCCL_FALCON_JOB", "loading-" + event + "-" + std::to_string(getpid())},
                                     {"NCCL_FALCON_TRAP_BUDGET", "100"}});
    // It takes half a minute where the machine is idle.
    const auto isOver = [&] { return !first(event).is_null() || !job.running(); };
    for (int minutes = 0; minutes < 4 && !eventually(isOver); ++minutes) {
    }
    job.signal(SIGTERM);
    job.wait();
    errors_ = job.errors();
  }
  json first(const std::string& event) const { return firstOf(event, eventsIn(folder_.file("events"))); }
  std::string story() const { return textOf(eventsIn(folder_.file("events"))) + errors_; }

 private:
  TemporaryFolder folder_;
  std::string errors_;
};

void expectLoadingNamed(const LoadingJob& job) {
  const json said = job.first("verdict");
  ASSERT_FALSE(said.is_null()) << job.story();
  EXPECT_EQ(said.value("culprit", json::object()).value("rank", -1), 2) << job.story();
  EXPECT_NE(said.at("text").get<std::string>().find("\"data\", outside of all collectives"), std::string::npos)
      << job.story();
  EXPECT_EQ(said.at("ranges").at(0).at("name"), "data") << job.story();
}

TEST(SlowOutsideOfCollectives, IsSaidToBeSoWithTheNameOfTheCode) {
  expectLoadingNamed(LoadingJob({"80", "60"}, "verdict"));
}

// Iterations take 17 to 45 ms as the sequences come: by their work all are alike, but those of a slow rank.
TEST(SlowOutsideOfCollectives, IsSeenByTheWorkThatTheJobTells) {
  const LoadingJob job({"120", "40", "work"}, "verdict");
  expectLoadingNamed(job);
  const json onset = job.first("onset");
  ASSERT_FALSE(onset.is_null()) << job.story();
  EXPECT_GE(onset.at("iteration"), 100) << "of the sequences' lengths" << job.story();
}

// Every iteration takes 8 ms of 120 more: too little for an onset, and for too long to be chance. Sleeps end late by up
// to three milliseconds an iteration where the machine is busy: of 30 ms that would be an onset by itself, and of 60 ms
// half of one.
TEST(MinorSlowness, IsToldOfALiveJobWithItsLikelyCulpritAndTheJobIsNotHeld) {
  const LoadingJob job({"80", "20", "long"}, "minor");
  const json said = job.first("minor");
  ASSERT_FALSE(said.is_null()) << job.story();
  EXPECT_EQ(said.at("severity"), 1) << job.story();
  EXPECT_EQ(said.value("culprit", json::object()).value("rank", -1), 2) << job.story();
  EXPECT_GE(said.at("iteration"), 80 + 180) << job.story();
  EXPECT_NE(said.at("text").get<std::string>().find("; likely rank 2"), std::string::npos) << job.story();
  for (const char* kind : {"onset", "trap-closed", "verdict"}) EXPECT_TRUE(job.first(kind).is_null()) << job.story();
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
