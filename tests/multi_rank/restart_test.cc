// A live job on one data-parallel replica, a rank of which becomes slow for good: it is restarted from its newest
// checkpoint once that has paid. With a spare it is healthy again; without one it is found to be slow from its start,
// since the healthy baseline has survived. `falcon demo --restart` shows the same, and compares the losses.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <fstream>

#include "base/median.h"
#include "demo/restart_evaluation.h"
#include "inject/processor_use.h"
#include "machine/cpu_cgroup.h"
#include "multi_rank/trained_job.h"

namespace falcon::tests {
namespace {

using testing::HasSubstr;

constexpr int ranks = 4;
constexpr Rank slow = 2;
constexpr int longest = 150;  // s that the job trains; it ends before, after a minute on two idle cores

class RestartedJob : public testing::Test {
 protected:
  void SetUp() override {
    if (const auto reason = whyNoTrainedJob()) GTEST_SKIP() << *reason;
  }
  void TearDown() override {
    if (job_ && HasFailure()) std::cout << textOf(events()) << job_->errors();
  }

  void start(int spares) {
    const auto trainer = std::filesystem::path(falconCommand({})[0]).parent_path() / "falcon-train";
    std::vector<std::string> words{
        "run",        "-n", std::to_string(ranks), "--nodes",          std::to_string(ranks), "--cgroups",
        "--restarts", "1",  "--describe",          folder_.file("job")};
    if (spares > 0) words.insert(words.end(), {"--spares", std::to_string(spares)});
    words.insert(words.end(),
                 {"--", trainer, "--pp", std::to_string(ranks), "--micro-batches", "8", "--checkpoints",
                  folder_.file("checkpoints"), "--checkpoint-every", "20", "--micro-batch-size", "2", "--duration",
                  std::to_string(longest), "--until", folder_.file("enough"), "--log", folder_.file("log"), "--quiet"});
    job_.emplace(falconCommand(words), std::map<std::string, std::string>{
                                           {"NCCL_FALCON", "1"},
                                           {"NCCL_FALCON_MITIGATE", "auto"},
                                           {"NCCL_FALCON_TRAP_BUDGET", "100"},
                                           {"NCCL_FALCON_RESTART_EXPECTED", "3s"},
                                           {"NCCL_FALCON_JOB", fmt::format("test-{}-restart-{}", getpid(), spares)},
                                           {"NCCL_FALCON_EVENTS", folder_.file("events")}});
  }
  std::vector<nlohmann::json> events() const { return eventsIn(folder_.file("events")); }
  std::vector<demo::NumberedIteration> iterations() const {
    return demo::parseNumberedLog(contentOf(folder_.file("log")));
  }
  /// Asks again and again; false where the job ends before. What is waited for are iterations, and there are slow days.
  bool comes(const std::function<bool()>& condition) { return eventually(*job_, condition); }

  /// Once the job knows what is healthy its rank's place gives a third of what it used, as long as the job lives.
  std::string makePlaceSlow() {
    EXPECT_TRUE(comes([&] { return !firstOf("baseline-taken", events()).is_null(); }));
    const std::size_t seen = iterations().size();
    EXPECT_TRUE(comes([&] { return iterations().size() >= seen + 40; }));
    const auto described = waitForDescription(folder_.file("job"));
    const auto& rank = described.ranks.at(slow);
    tools::ProcessorUse use(rank.process);
    SystemClock::instance().sleep(3s);
    const tools::CpuCgroup place(rank.cgroup);
    const auto set = place.setQuota(std::max(tools::CpuCgroup::leastQuota, use.cores().value_or(0) / 3));
    EXPECT_TRUE(set);
    slowed_ = iterations().size();
    return rank.cgroup;
  }

  double medianMilliseconds(std::size_t from, std::size_t to) const {
    std::vector<double> times;
    const auto all = iterations();
    for (std::size_t i = from; i < std::min(to, all.size()); ++i) times.push_back((all[i].end - all[i].start) * 1e3);
    return median(std::move(times));
  }

  TemporaryFolder folder_;
  std::optional<Started> job_;
  std::size_t slowed_ = 0;
};

bool isRestart(const nlohmann::json& event) {
  return event.at("kind") == "mitigation-applied" && event.value("action", "") == "restart";
}

TEST_F(RestartedJob, IsHealthyAgainWithASpareInTheSlowOnesPlace) {
  start(1);
  const std::string place = makePlaceSlow();
  ASSERT_TRUE(comes([&] {
    const auto all = events();
    return std::any_of(all.begin(), all.end(), isRestart);
  }));
  ASSERT_TRUE(comes([&] { return waitForDescription(folder_.file("job")).ranks.at(slow).cgroup != place; }));
  const std::size_t before = iterations().size();
  ASSERT_TRUE(comes([&] { return iterations().size() >= before + 30; }));
  std::ofstream(folder_.file("enough")).close();
  EXPECT_EQ(job_->wait(), 0);
  EXPECT_THAT(job_->errors(), HasSubstr(fmt::format("spare 0 takes the place of rank {}", slow)));
  const double healthy = medianMilliseconds(slowed_ - 30, slowed_);
  const double slowly = medianMilliseconds(slowed_ + 1, before - 2);
  const double afterwards = medianMilliseconds(before + 3, before + 30);
  EXPECT_GE(slowly, 1.3 * healthy);
  // Most of the slowdown is gone; what other programs take of the machine changes meanwhile.
  EXPECT_GE((slowly - afterwards) / (slowly - healthy), 0.6)
      << healthy << " ms in health, " << slowly << " slow, " << afterwards << " afterwards";
  // Nothing was trained twice, and nothing left out.
  const auto all = iterations();
  for (std::size_t i = 0; i < all.size(); ++i) ASSERT_EQ(all[i].number, i);
}

TEST_F(RestartedJob, IsComparedWithTheHealthyOneItWasBefore) {
  start(0);
  makePlaceSlow();
  EXPECT_TRUE(comes([&] {
    for (const auto& event : events())
      if (event.at("kind") == "onset" &&
          event.at("text").get<std::string>().find("when this job ran last") != std::string::npos)
        return true;
    return false;
  }));
  EXPECT_THAT(job_->errors(), HasSubstr(fmt::format("rank {} keeps its place: no spare is left of 0", slow)));
  job_->signal(SIGTERM);
  EXPECT_EQ(job_->wait(), 143);
}

}  // namespace
}  // namespace falcon::tests
