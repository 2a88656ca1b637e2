// The main promise, on live jobs: who turns slow is named and worked around, and when it has recovered that is undone.
// Of a job that stays healthy nothing is said. One run a case; nothing is tried twice. Where other programs take this
// machine's cores meanwhile, saying that is right, if our own account of /proc/stat has it too. So it is where the
// processors themselves turn slower, as those of a virtual machine do when others share them: then the same work takes
// the ranks more processor time, which the trainer notes.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <map>
#include <set>
#include <thread>
#include <utility>

#include "base/median.h"
#include "inject/other_load.h"
#include "inject/outcome.h"
#include "multi_rank/trained_job.h"

namespace falcon::tests {
namespace {

using nlohmann::json;
using testing::IsEmpty;

constexpr double always = TrainedJob::always;
constexpr double asFast = 1.25;  // so much longer an iteration may take, and is as fast as a healthy one
// So much of it the machine may be to blame for.
constexpr double mostOfTheMachine = 1.25;
// s before something was said, unless it says since when; and times that work took longer.
constexpr double lookBack = 6, clearlySlower = 1.1;
constexpr double longestUntilRelief = 15;  // s
constexpr std::size_t enough = 12;         // iterations, for a median
// s that are waited for iterations of which the machine is not to blame for more than that.
constexpr double longestUntilCalm = 15;
// s that a job trains; one in which something is slow ends before, after half a minute on two idle cores. What is
// waited for are iterations, and there are slow days.
constexpr int longest = 90, healthyFor = 40;

struct Case {
  const char* name;
  TrainedShape shape;
  Culprit culprit{};   ///< kind none: nothing is injected
  double factor = 2;   ///< how many times longer iterations shall take
  std::string action;  ///< of the remedy, as events name it
};

void PrintTo(const Case& shown, std::ostream* out) {
  *out << shown.name;
}

// Both have a replica on each of four nodes, whose gradients go round a ring.
TrainedShape dataParallel(int seconds = longest) {
  return {{4, 1, 1}, 4, 32, seconds, {"--micro-batch-size", "3", "--layers", "2"}};
}
TrainedShape tensorParallel() {
  return {{4, 1, 2}, 4, 16, longest, {"--micro-batch-size", "4", "--layers", "2"}};
}
/// A ring of two has no other way round.
TrainedShape twoReplicas() {
  return {{2, 2, 1}, 4, 16, longest, {"--micro-batch-size", "3", "--layers", "4"}};
}
Culprit slowRank(Rank rank) {
  return {CulpritKind::rank, rank, {}, false};
}
Culprit slowLink(Rank from, Rank to, bool bothWays) {
  return {CulpritKind::link, -1, {from, to}, bothWays};
}

double timeOf(const json& event) {
  return event.at("time_s").get<double>();
}

/// Of a link that is slow both ways either end may stand first.
bool names(const json& event, const Culprit& truth) {
  const json culprit = event.value("culprit", json{});
  if (!culprit.is_object()) return false;
  if (truth.kind == CulpritKind::rank) return culprit.at("kind") == "rank" && culprit.at("rank") == truth.rank;
  if (truth.kind == CulpritKind::host) return culprit.at("kind") == "host";
  if (culprit.at("kind") != "link" || culprit.at("both_ways") != truth.bothWays) return false;
  const Link said{culprit.at("from"), culprit.at("to")};
  return said == truth.link || (truth.bothWays && said == Link{truth.link.to, truth.link.from});
}

class LiveJob : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    if (const auto reason = whyNoTrainedJob()) GTEST_SKIP() << *reason;
    const std::filesystem::path events =
        std::filesystem::path(LIVE_EVENTS_FOLDER) / (std::string(GetParam().name) + ".jsonl");
    std::filesystem::create_directories(events.parent_path());
    std::filesystem::remove(events);
    job_.emplace(
        GetParam().shape, GetParam().name,
        std::map<std::string, std::string>{{"NCCL_FALCON_MITIGATE", "auto"}, {"NCCL_FALCON_TRAP_BUDGET", "100"}},
        events);
    others_.emplace(job_->description());
  }

  void TearDown() override {
    if (!job_) return;
    for (const json& event : job_->events())
      if (isOfHost(event) && !isOurs(event)) excused_.emplace(timeOf(event), event.at("kind"));
    std::string kinds;
    for (const auto& [time, kind] : excused_) kinds += (kinds.empty() ? "" : ", ") + kind;
    std::cout << fmt::format("explained by other programs or by the machine: {}\n", kinds.empty() ? "nothing" : kinds);
    if (HasFailure()) std::cout << othersUsed_ << job_->story();
  }

  TrainedJob& job() { return *job_; }
  /// Median seconds of the last iterations before the job was held: a fault bites some time after it began, and two
  /// iterations later the job may be held.
  double lastBefore(double held) {
    std::vector<double> lasted;
    for (const TrainedIteration& each : job().iterations(0, held)) lasted.push_back(each.end - each.start);
    constexpr std::size_t most = 3;
    if (lasted.size() > most) lasted.erase(lasted.begin(), lasted.end() - most);
    return lowerMedian(std::move(lasted), 0);
  }

  double lastHeldBefore(double time) const {
    double held = 0;
    for (const json& event : said("trap-closed"))
      if (timeOf(event) < time) held = timeOf(event);
    return held;
  }

  /// All events but those of a host whose processors other programs took.
  std::vector<json> events() const {
    const std::vector<json> all = job_->events();
    std::vector<json> left;
    std::ranges::copy_if(all, std::back_inserter(left),
                         [&](const json& event) { return !isOfHost(event) || !isOfOthers(event, all); });
    return left;
  }
  std::vector<json> said(const std::string& kind) const {
    std::vector<json> all = events();
    std::erase_if(all, [&](const json& event) { return event.at("kind") != kind; });
    return all;
  }
  bool eventually(const std::function<bool()>& condition) {
    return job().eventually([&] {
      others_->look();
      return condition();
    });
  }
  bool isSaid(const std::string& kind) {
    return eventually([&] { return !said(kind).empty(); });
  }
  /// What the trainer was told of the job between two times, by any of its rank 0's iterations.
  std::set<std::string> healths(double from, double to) const {
    std::set<std::string> told;
    for (const TrainedIteration& each : job_->iterations(from, to)) told.insert(each.health);
    return told;
  }
  /// Some rank was told of a change of its plan or role.
  bool isAnyToldOfAChange() const {
    for (Rank rank = 0; rank < GetParam().shape.layout.size(); ++rank)
      for (const TrainedIteration& each : job_->iterations(0, always, rank))
        if (each.changed != 0) return true;
    return false;
  }
  bool areTrained(std::size_t iterations, double from) {
    return eventually([&] { return job().iterations(from).size() >= iterations; });
  }

  /// A failure says what other programs did meanwhile.
  void ends(const std::string& phase) {
    const double now = tools::momentNow().monotonic;
    othersUsed_ += fmt::format("other programs used {:.1f} cores {}\n", others_->uses().cores(phaseBegan_, now), phase);
    phaseBegan_ = now;
  }

  /// The host was named, for other programs, and not yet relieved.
  bool isHostSlow() const {
    bool slow = false;
    for (const json& event : job_->events())
      if (isOfHost(event)) slow = event.at("kind") == "verdict";
    return slow;
  }

  struct Stretch {
    double from, to;
  };
  /// How many times longer the processors took for the same work than in an earlier stretch, by rank; 1 where nothing
  /// is known.
  std::vector<double> machineSlowdowns(Stretch stretch, Stretch before) const {
    const auto now = job_->processorSeconds(stretch.from, stretch.to),
               healthy = job_->processorSeconds(before.from, before.to);
    std::vector<double> growths;
    for (std::size_t rank = 0; rank < now.size(); ++rank)
      growths.push_back(now[rank] > 0 && healthy[rank] > 0 ? now[rank] / healthy[rank] : 1);
    return growths;
  }
  /// Of the whole job: how much slower its processors were, in the middle of the ranks, and how much fewer of them were
  /// left to it. Neither is ever below 1.
  double machineSlowdown(Stretch stretch, Stretch before) const {
    const auto left = [&](Stretch of) {
      return std::max(1.0, std::thread::hardware_concurrency() - others_->uses().cores(of.from, of.to));
    };
    return std::max(1.0, lowerMedian(machineSlowdowns(stretch, before), 1)) *
           std::max(1.0, left(before) / left(stretch));
  }
  /// The first iterations from then on, enough of them, that were trained on a machine hardly slower than it was
  /// `before`; after a while the last ones, however that was. Empty where the job ended too early.
  Stretch calmStretch(double from, Stretch before) {
    Stretch stretch{from, from};
    do {
      if (!areTrained(enough, stretch.to)) return {from, from};
      const auto all = job().iterations(stretch.to);
      stretch = {all.front().start, all.back().end};
    } while (machineSlowdown(stretch, before) > mostOfTheMachine && stretch.to - from < longestUntilCalm);
    return stretch;
  }

  /// Kinds of all that was said between two times, but for what is said of every healthy job, and for what our own
  /// account says, too: of nobody in particular while other programs used the machine or a rank's processor was slower
  /// (an onset, or a suspicion and the test that then found nobody), and of a rank whose own processor was slower by at
  /// least half of what it is said to be.
  std::vector<std::string> alarms(double from, double to) {
    static const std::set<std::string> calm{"job-started", "period-known", "baseline-taken", "job-ended"};
    static const std::set<std::string> ofNobody{"onset", "worsening", "easing", "suspicion", "inconclusive"};
    static const std::set<std::string> follows{"trap-closed", "trap-opened", "inconclusive"};
    const std::vector<json> all = events();
    const json learnt = firstOf("baseline-taken", all);
    bool excused = false;
    std::set<json> slowRanks;  // culprits that were slow indeed
    std::vector<std::string> kinds;
    for (const json& event : all) {
      const std::string kind = event.at("kind");
      const double time = timeOf(event);
      if (time < from || time >= to || calm.contains(kind)) continue;
      const auto slowdowns =
          learnt.is_null() ? std::vector<double>{1} : machineSlowdowns(stretchOf(event), {0, timeOf(learnt)});
      const bool follow = follows.contains(kind);
      if (ofNobody.contains(kind))
        excused =
            (follow && excused) || isOfOthers(event, all) || *std::ranges::max_element(slowdowns) >= clearlySlower;
      const json culprit = event.value("culprit", json{});
      const auto rank = culprit.is_object() && culprit.at("kind") == "rank" ? culprit.at("rank").get<std::size_t>()
                                                                            : slowdowns.size();
      if (kind == "verdict" && rank < slowdowns.size() && slowdowns[rank] >= clearlySlower &&
          slowdowns[rank] - 1 >= (growthToldOf(rank, event) - 1) / 2)
        slowRanks.insert(culprit);
      const bool ofThat = ofNobody.contains(kind) || follow || (kind == "relief" && culprit.is_null());
      if (slowRanks.contains(culprit) || (ofThat && excused))
        excused_.emplace(time, kind);
      else
        kinds.push_back(kind);
    }
    return kinds;
  }

  Stretch contending_{always, always};  ///< in which we ourselves are the other programs

 private:
  static bool isOfHost(const json& event) {
    return event.contains("culprit") && event.at("culprit").is_object() && event.at("culprit").at("kind") == "host";
  }

  bool isOurs(const json& event) const { return timeOf(event) >= contending_.from && timeOf(event) <= contending_.to; }

  /// What an event is about: the iterations just before it that are nearer to the level that it says they went to than
  /// to the one that they came from, where it says both. A change is told after a second, and the median of six would
  /// be of before.
  Stretch stretchOf(const json& event) const {
    constexpr int fewest = 3;
    const double time = timeOf(event), before = event.value("before_ms", 0.0), after = event.value("after_ms", 0.0);
    Stretch stretch{time - lookBack, time};
    if (before <= 0 || after <= before) return stretch;
    const auto all = job_->iterations(stretch.from, stretch.to);
    int nearer = 0;
    for (auto each = all.rbegin(); each != all.rend(); ++each, ++nearer) {
      if ((each->end - each->start) * 1e3 < std::sqrt(before * after)) break;
      if (nearer + 1 >= fewest) stretch.from = each->start;
    }
    return stretch;
  }

  /// How many times longer a verdict says that the rank takes for its own work; without end where it does not say.
  static double growthToldOf(std::size_t rank, const json& verdict) {
    for (const json& observed : verdict.value("observed", json::array()))
      if (observed.at("what") == "own time" && observed.at("rank") == rank) return observed.value("slower", always);
    return always;
  }

  /// Other programs explain the event, one of `all`. While we ourselves are the other programs nothing is explained.
  bool isOfOthers(const json& event, const std::vector<json>& all) const {
    if (isOurs(event)) return false;
    const json learnt = firstOf("baseline-taken", all);
    const double healthyAt = learnt.is_null() ? always : timeOf(learnt);
    Culprit culprit;
    if (event.contains("culprit") && event.at("culprit").is_object())
      culprit.kind = isOfHost(event) ? CulpritKind::host : CulpritKind::rank;  // else anybody who is not one
    return tools::isOfOtherPrograms(event.at("kind"), culprit, timeOf(event), others_->uses(), healthyAt);
  }

  std::optional<TrainedJob> job_;
  std::optional<tools::OtherLoad> others_;
  std::set<std::pair<double, std::string>> excused_;  ///< what was said with reason: its time and kind
  double phaseBegan_ = 0;
  std::string othersUsed_;
};

class LiveFailSlow : public LiveJob {};

TEST_P(LiveFailSlow, IsNamedAndWorkedAroundUntilItHasRecovered) {
  const Culprit& culprit = GetParam().culprit;
  ASSERT_TRUE(isSaid("baseline-taken"));
  const double learnt = timeOf(said("baseline-taken")[0]);
  ASSERT_TRUE(areTrained(enough, learnt));
  ASSERT_THAT(alarms(0, always), IsEmpty()) << "nothing was injected yet";
  ends("while it was healthy");

  const Stretch untouched{learnt, job().iterations().back().end};
  Started injection(job().injectCommand(culprit, GetParam().factor, longest));
  ASSERT_TRUE(isSaid("verdict")) << injection.errors();
  ASSERT_TRUE(isSaid("mitigation-applied"));
  ends("until it was worked around");
  const double applied = timeOf(said("mitigation-applied")[0]);
  const Stretch workedAround = calmStretch(applied, untouched);
  ASSERT_GT(workedAround.to, applied);
  ends("while it was worked around");
  injection.signal(SIGTERM);
  injection.wait();
  const json outcome = json::parse(injection.output(), nullptr, false);
  ASSERT_TRUE(outcome.is_object()) << injection.output() << injection.errors();
  ASSERT_TRUE(outcome.at("effective").get<bool>()) << outcome;
  const double began = outcome.at("started").at("monotonic"), ended = outcome.at("ended").at("monotonic");

  ASSERT_TRUE(isSaid("relief"));
  ASSERT_TRUE(isSaid("mitigation-undone"));
  const double relieved = timeOf(said("relief")[0]), undone = timeOf(said("mitigation-undone")[0]);
  const Stretch recovered = calmStretch(undone, untouched);
  ASSERT_GT(recovered.to, undone);
  ends("after that");
  const bool othersAreTold = isHostSlow();
  Started status(falconCommand({"status", "--json", job().name()}));
  EXPECT_EQ(status.wait(), othersAreTold ? 3 : 0) << status.output();
  Started plan(falconCommand({"plan", "--json", job().name()}));
  EXPECT_EQ(plan.wait(), 0) << plan.errors();
  job().stop();
  EXPECT_EQ(job().wait(), 0);

  const double named = timeOf(said("verdict")[0]), held = lastHeldBefore(named);
  const double healthy = job().iterationSeconds(learnt, began), slow = lastBefore(held),
               remedied = job().iterationSeconds(workedAround.from, workedAround.to),
               after = job().iterationSeconds(recovered.from, recovered.to);
  const double slowerWhile = std::min(machineSlowdown(workedAround, untouched), mostOfTheMachine),
               slowerAfter = std::min(machineSlowdown(recovered, untouched), mostOfTheMachine);
  const std::string course = fmt::format(
      "{}: {:.0f} ms an iteration, slow {:.0f} ms, worked around {:.0f} ms, in the end {:.0f} ms; named {:.1f} s after "
      "it began, relieved {:.1f} s after it ended; the machine was {:.2f} and {:.2f} times slower\n",
      nameOf(culprit), healthy * 1e3, slow * 1e3, remedied * 1e3, after * 1e3, named - began, relieved - ended,
      slowerWhile, slowerAfter);
  std::cout << course;

  EXPECT_THAT(alarms(0, began), IsEmpty()) << "nothing was injected yet";
  ASSERT_EQ(said("verdict").size(), 1u);
  EXPECT_TRUE(names(said("verdict")[0], culprit));
  EXPECT_EQ(said("mitigation-applied")[0].at("action"), GetParam().action);
  EXPECT_TRUE(names(said("mitigation-applied")[0], culprit));
  EXPECT_GT(slow, asFast * healthy) << "else there was nothing to be worked around";
  EXPECT_LE(remedied, asFast * healthy * slowerWhile);
  EXPECT_LE(remedied - healthy * slowerWhile, (slow - healthy) / 2) << "the machine excuses no remedy without effect";
  EXPECT_GE(relieved, ended);
  EXPECT_LE(relieved, ended + longestUntilRelief);
  EXPECT_TRUE(names(said("relief")[0], culprit));
  EXPECT_EQ(said("mitigation-undone")[0].at("action"), GetParam().action);
  EXPECT_THAT(healths(learnt, began), testing::Contains("healthy"));
  EXPECT_THAT(healths(named, relieved), testing::Contains("slow"));
  EXPECT_THAT(healths(undone, always), othersAreTold ? testing::Contains("slow") : testing::Contains("healthy"));
  EXPECT_EQ(isAnyToldOfAChange(), GetParam().action != "reroute") << "rings are nobody's business";
  EXPECT_LE(after, asFast * healthy * slowerAfter);
  EXPECT_EQ(json::parse(status.output()).at(0).at("failslow_active"), othersAreTold);
  EXPECT_THAT(json::parse(plan.output()).at("in_force"), IsEmpty()) << plan.output();
  EXPECT_EQ(job().split(always), job().split(began));
  if (culprit.kind == CulpritKind::rank) {
    const auto split = job().split(ended);
    EXPECT_LT(split[static_cast<std::size_t>(culprit.rank)],
              job().split(began)[static_cast<std::size_t>(culprit.rank)]);
  } else {
    EXPECT_THAT(said("mitigation-undone")[0].at("text"),
                testing::HasSubstr(GetParam().action == std::string("swap") ? "has its first role again"
                                                                            : "in the first order again"));
  }
  EXPECT_THAT(alarms(undone, always), testing::ElementsAre("mitigation-undone"));
}

INSTANTIATE_TEST_SUITE_P(
    Jobs, LiveFailSlow,
    testing::Values(Case{"slow_rank", dataParallel(), slowRank(2), 2, "split"},
                    Case{"slow_link_one_way", dataParallel(), slowLink(1, 2, false), 2, "reroute"},
                    Case{"slow_link_both_ways", dataParallel(), slowLink(2, 3, true), 2, "reroute"},
                    Case{"slow_link_tensor_one_way", tensorParallel(), slowLink(2, 4, false), 2, "reroute"},
                    Case{"slow_link_tensor_both_ways", tensorParallel(), slowLink(3, 5, true), 2, "reroute"},
                    Case{"slow_link_of_two_replicas", twoReplicas(), slowLink(0, 2, true), 2.5, "swap"}),
    [](const auto& cases) { return std::string(cases.param.name); });

class LiveContention : public LiveJob {};

// The papers' commonest computation fail-slow (Falcon, arXiv 2410.12588, section 3.2, case 1). No test could tell who
// it is, and the job must not be held for one.
TEST_P(LiveContention, IsSaidOfTheHostWithoutHoldingTheJob) {
  ASSERT_TRUE(isSaid("baseline-taken"));
  const double learnt = timeOf(said("baseline-taken")[0]);
  ASSERT_TRUE(areTrained(enough, learnt));
  ASSERT_TRUE(eventually([&] { return !isHostSlow(); }));
  ends("while it was healthy");
  const double began = contending_.from = job().iterations().back().end;
  double ended = 0;
  {
    std::vector<std::unique_ptr<Started>> programs;
    // Each in a session of its own, as other people's programs are: those of one session share one program's part of
    // the processors (sched_autogroup), which is hardly a tenth here.
    for (int i = 0; i < 4; ++i)
      programs.push_back(std::make_unique<Started>(
          std::vector<std::string>{"/usr/bin/setsid", "/bin/sh", "-c", "while :; do :; done"}));
    ASSERT_TRUE(isSaid("verdict"));
    ASSERT_TRUE(areTrained(enough, timeOf(said("verdict")[0])));
    ends("while other programs ran for nothing");
    ended = job().iterations().back().end;
  }
  ASSERT_TRUE(isSaid("relief"));
  contending_.to = timeOf(said("relief")[0]);
  ASSERT_TRUE(areTrained(enough, contending_.to));
  ends("after that");
  job().stop();
  EXPECT_EQ(job().wait(), 0);

  std::cout << fmt::format("{:.0f} ms an iteration, {:.0f} ms beside others, {:.0f} ms in the end\n",
                           1e3 * job().iterationSeconds(learnt, began), 1e3 * job().iterationSeconds(began, ended),
                           1e3 * job().iterationSeconds(timeOf(said("relief")[0]), always));
  EXPECT_THAT(alarms(0, began), IsEmpty()) << "nobody else was there yet";
  ASSERT_EQ(said("verdict").size(), 1u);
  EXPECT_TRUE(names(said("verdict")[0], GetParam().culprit));
  EXPECT_THAT(said("verdict")[0].at("text"), testing::HasSubstr("CPU contention from outside"));
  EXPECT_THAT(said("trap-closed"), IsEmpty());
  EXPECT_THAT(said("suspicion"), IsEmpty());
  EXPECT_TRUE(names(said("relief")[0], GetParam().culprit));
  EXPECT_LE(timeOf(said("relief")[0]), ended + longestUntilRelief);
}

INSTANTIATE_TEST_SUITE_P(Jobs, LiveContention,
                         testing::Values(Case{"contended_host", dataParallel(), Culprit{CulpritKind::host}}),
                         [](const auto& cases) { return std::string(cases.param.name); });

class LiveHealthy : public LiveJob {};

TEST_P(LiveHealthy, IsNotSpokenOf) {
  const auto hasTrained = [&](double seconds) {
    const auto all = job().iterations();
    return !all.empty() && all.back().end - all.front().start >= seconds;
  };
  for (const int quarter : {1, 2, 3}) {
    ASSERT_TRUE(eventually([&] { return hasTrained(quarter * healthyFor / 4.0); }));
    ends(fmt::format("in quarter {}", quarter));
  }
  EXPECT_EQ(job().wait(), 0);
  EXPECT_EQ(said("baseline-taken").empty(), false);
  EXPECT_EQ(said("job-ended").size(), 1u);
  EXPECT_THAT(alarms(0, always), IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(Jobs, LiveHealthy, testing::Values(Case{"healthy", dataParallel(healthyFor)}),
                         [](const auto& cases) { return std::string(cases.param.name); });

}  // namespace
}  // namespace falcon::tests
