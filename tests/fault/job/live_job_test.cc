// What an engineer does to a live job from outside: look at it, slow it, switch Falcon off.
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <thread>

#include "inject/other_load.h"
#include "inject/outcome.h"
#include "training_job.h"

namespace falcon::tests {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;

std::string textOf(const std::vector<json>& events) {
  std::string text;
  for (const json& event : events) text += event.dump() + "\n";
  return text;
}

/// What other programs use of this machine. Where they begin to while the job runs, it is right to name its host.
class OthersBeside {
 public:
  explicit OthersBeside(const TrainingJob& job) : job_(*tools::readDescription(job.description())), load_(job_) {}

  /// What was so far is what they use beside a healthy job.
  void endHealth() {
    keep();
    healthyUntil_ = looked_;
  }
  /// These processes, and what they start, are no others.
  void leaveOut(const std::vector<pid_t>& processes) {
    tools::JobDescription more = job_;
    for (const pid_t process : processes) more.ranks.push_back({.process = process});
    load_ = tools::OtherLoad(more);
    looked_ = tools::momentNow().monotonic;
  }
  /// Now and then.
  void look() {
    if (tools::momentNow().monotonic - looked_ >= 0.5) keep();
  }
  bool explain(const json& verdict) const {
    if (verdict.at("culprit").value("kind", "") != "host") return false;
    const Culprit host{CulpritKind::host, -1, {}, false};
    return tools::isOfOtherPrograms("verdict", host, verdict.at("time_s"), uses_, healthyUntil_);
  }

 private:
  void keep() {
    const double now = tools::momentNow().monotonic;
    uses_.add({looked_, now, load_.cores()});
    looked_ = now;
  }

  const tools::JobDescription job_;
  tools::OtherLoad load_;
  tools::OtherUses uses_;
  double looked_ = tools::momentNow().monotonic, healthyUntil_ = 0;
};

void eventuallyWithin(std::chrono::seconds limit, const std::function<bool()>& condition) {
  for (const auto end = std::chrono::steady_clock::now() + limit;
       !condition() && std::chrono::steady_clock::now() < end;)
    std::this_thread::sleep_for(50ms);
}

class LiveJob : public testing::Test {
 protected:
  void SetUp() override {
    if (const auto reason = whyNoCgroups()) GTEST_SKIP() << *reason;
  }
};

// Falcon has no name for what is injected here: it knows slow processors and slow links.
TEST_F(LiveJob, ARankBesideAMemoryHogIsNamed) {
  constexpr int victim = 2;
  TrainingJob job(240);
  ASSERT_TRUE(job.waitForEvent("baseline-taken", 90)) << job.errors() << textOf(job.events());
  EXPECT_EQ(job.status().code, 0);
  OthersBeside others(job);
  std::this_thread::sleep_for(3s);  // some healthy iterations to compare with
  others.endHealth();
  const auto healthy = job.events();
  for (const json& event : healthy)
    ASSERT_NE(event.at("kind"), "suspicion") << "nothing was injected yet\n" << textOf(healthy);
  const size_t before = healthy.size();

  // Two streams: they and the rank share what its cgroup gets, so iterations take about 1.6 times as long.
  Started hogs[] = {Started(injectCommand(job, {"memory-hog", "--rank", std::to_string(victim)})),
                    Started(injectCommand(job, {"memory-hog", "--rank", std::to_string(victim)}))};
  others.leaveOut({hogs[0].process(), hogs[1].process()});
  std::optional<json> verdict;
  eventuallyWithin(150s, [&] {
    others.look();
    const auto all = job.events();
    const auto named = std::find_if(all.begin() + static_cast<std::ptrdiff_t>(before), all.end(), [&](const json& one) {
      return one.at("kind") == "verdict" && !others.explain(one);
    });
    if (named != all.end()) verdict = *named;
    return verdict.has_value() || !job.running();
  });
  ASSERT_TRUE(verdict) << textOf(job.events());
  EXPECT_EQ(verdict->at("culprit").value("kind", ""), "rank") << textOf(job.events());
  EXPECT_EQ(verdict->at("culprit").value("rank", -1), victim) << textOf(job.events());

  // The monitors show it on their next round, after the trap.
  TrainingJob::Shown shown;
  EXPECT_TRUE(eventually([&] { return (shown = job.status()).code == 3; })) << shown.job.dump();
  EXPECT_EQ(shown.job.value("failslow_active", false), true) << shown.job.dump();
  for (Started& hog : hogs) {
    hog.signal(SIGTERM);
    EXPECT_EQ(hog.wait(), 0) << hog.errors();
    EXPECT_GT(json::parse(hog.output()).at("bytes"), 0);
  }
}

TEST_F(LiveJob, SwitchedOffFallsSilentAndTrainsOn) {
  TrainingJob job(300);
  ASSERT_TRUE(job.waitForEvent("baseline-taken", 120)) << job.errors() << textOf(job.events());
  const auto live = job.status();
  EXPECT_EQ(live.code, 0);
  EXPECT_EQ(live.job.value("running", false), true) << live.job.dump();
  EXPECT_EQ(live.job.value("failslow_active", true), false);
  ASSERT_EQ(live.job.at("ranks").size(), static_cast<size_t>(TrainingJob::ranks));
  int controllers = 0;
  for (int rank = 0; rank < TrainingJob::ranks; ++rank) {
    const json& one = live.job.at("ranks")[rank];
    EXPECT_EQ(one.at("rank"), rank);
    EXPECT_EQ(one.at("alive"), true);
    EXPECT_GT(one.at("iterations"), 0);
    EXPECT_GT(one.at("iteration_s"), 0.0);
    EXPECT_NE(one.at("state"), "off");
    controllers += one.at("controller").get<bool>();
  }
  EXPECT_EQ(controllers, 1);

  const auto iterationsBefore = job.iterations();
  Started off(falconCommand({"off", job.name()}));
  EXPECT_EQ(off.wait(), 0) << off.errors();
  const auto iterationsAfter = job.iterations();
  for (const json& rank : job.status().job.at("ranks")) EXPECT_EQ(rank.at("state"), "off") << rank.dump();
  EXPECT_LE(iterationsAfter - iterationsBefore, 100u);  // a handful is usual
  ASSERT_TRUE(job.waitForEvent("switched-off", 60)) << textOf(job.events());

  // What raises an onset otherwise; see the test above for a weaker one that does.
  const size_t said = job.events().size();
  Started slow(injectCommand(job, {"slow-rank", "--rank", "1", "--factor", "4", "--for", "6"}));
  EXPECT_EQ(slow.wait(), 0) << slow.errors();
  EXPECT_EQ(job.status().code, 0);
  const auto last = job.iterations();
  EXPECT_TRUE(eventually([&] { return job.iterations() > last + 3; })) << "the job does not train on";
  job.stop();
  EXPECT_EQ(job.wait(), 0) << job.errors();
  EXPECT_EQ(job.events().size(), said) << textOf(job.events());
}

TEST(Status, OfNoJobFails) {
  Started command(falconCommand({"status", "no-such-job"}));
  EXPECT_EQ(command.wait(), 1);
  EXPECT_NE(command.errors().find("no job named no-such-job"), std::string::npos) << command.errors();
}

TEST(Off, OfNoJobFails) {
  Started command(falconCommand({"off", "no-such-job"}));
  EXPECT_EQ(command.wait(), 1);
  EXPECT_NE(command.errors().find("no running job named no-such-job"), std::string::npos) << command.errors();
}

}  // namespace
}  // namespace falcon::tests
