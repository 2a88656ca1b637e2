// `falcon inject` against running jobs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>

#include <fcntl.h>
#include <atomic>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "base/owned.h"
#include "inject/processor_use.h"
#include "machine/cpu_cgroup.h"
#include "machine/net_namespace.h"
#include "machine/processes.h"
#include "machine/program.h"
#include "multi_rank/run_harness.h"

namespace falcon::tests {
namespace {

using testing::HasSubstr;
using namespace std::chrono_literals;

/// The counters that `run_probe stream` adds to.
class Streams {
 public:
  Streams() : file_(folder_.file("counters")) {
    const FileDescriptor file(::open(file_.c_str(), O_RDWR | O_CREAT, 0600));
    EXPECT_EQ(::ftruncate(file.get(), size), 0);
    counters_ = static_cast<std::atomic<std::uint64_t>*>(::mmap(nullptr, size, PROT_READ, MAP_SHARED, file.get(), 0));
  }
  ~Streams() { ::munmap(counters_, size); }

  const std::string& file() const { return file_; }
  std::uint64_t received(int from, int to) const { return counters_[from * 64 + to]; }
  /// Megabits a second over the next second.
  std::map<std::string, double> measure(const std::vector<std::pair<int, int>>& pairs) const {
    std::vector<std::uint64_t> before;
    for (const auto& [from, to] : pairs) before.push_back(received(from, to));
    const auto start = std::chrono::steady_clock::now();
    std::this_thread::sleep_for(1500ms);
    std::map<std::string, double> rates;
    for (size_t at = 0; at < pairs.size(); ++at) {
      const auto [from, to] = pairs[at];
      const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
      rates[std::to_string(from) + "-" + std::to_string(to)] =
          static_cast<double>(received(from, to) - before[at]) * 8e-6 / elapsed.count();
    }
    return rates;
  }

 private:
  static constexpr size_t size = 64 * 64 * 8;
  TemporaryFolder folder_;
  std::string file_;
  std::atomic<std::uint64_t>* counters_ = nullptr;
};

std::vector<std::string> inject(const std::vector<std::string>& words) {
  std::vector<std::string> all{"inject"};
  all.insert(all.end(), words.begin(), words.end());
  return falconCommand(all);
}

std::string queuesOf(const tools::RankDescription& rank) {
  const auto netNamespace = tools::openNetNamespace(rank.netNamespace);
  const auto text = tools::runProgram({{"tc", "qdisc", "show", "dev", rank.interface}, netNamespace->get()});
  return text ? *text : text.error().message();
}

/// In how many of the looks within `span` the process was stopped; the injector stops a rank many times a second.
int timesSeenStopped(int process, std::chrono::milliseconds span) {
  int times = 0;
  for (const auto end = std::chrono::steady_clock::now() + span; std::chrono::steady_clock::now() < end;) {
    std::ifstream file(fmt::format("/proc/{}/stat", process));
    std::string text;
    std::getline(file, text);
    const auto name = text.rfind(") ");
    times += name != std::string::npos && text[name + 2] == 'T';
    std::this_thread::sleep_for(2ms);
  }
  return times;
}

/// Those who undo an injection have done so, and have let go of the victim, when they have ended.
void awaitTheEndOf(const std::set<pid_t>& guardians) {
  for (const pid_t guardian : guardians) EXPECT_TRUE(eventually([&] { return !isAlive(guardian); })) << guardian;
}

class InjectSlowRank : public testing::TestWithParam<bool> {};

TEST_P(InjectSlowRank, SlowsASpinningRankAndNoOther) {
  const bool cgroups = GetParam();
  if (const auto reason = cgroups ? whyNoCgroups() : std::nullopt) GTEST_SKIP() << *reason;
  TemporaryFolder folder;
  std::vector<std::string> words{"run", "-n", "2", "--describe", folder.file("job")};
  if (cgroups) words.push_back("--cgroups");
  words.insert(words.end(), {"--", probe(), "spin"});
  Started job(falconCommand(words));
  const auto description = waitForDescription(folder.file("job"));
  ASSERT_EQ(description.ranks.size(), 2u);
  const std::string free = cgroups ? *tools::CpuCgroup(description.ranks[1].cgroup).quota() : "";

  Started injection(
      inject({"slow-rank", "--describe", folder.file("job"), "--rank", "1", "--factor", "4", "--for", "3", "--json"}));
  if (!cgroups) {
    EXPECT_TRUE(eventually(injection, [&] { return tools::isStopped(description.ranks[1].process); }));
  }
  EXPECT_EQ(injection.wait(), 0) << injection.errors();
  const auto outcome = nlohmann::json::parse(injection.output());
  EXPECT_EQ(outcome.at("kind"), "slow-rank");
  EXPECT_EQ(outcome.at("rank"), 1);
  EXPECT_TRUE(outcome.at("effective"));
  const double before = outcome.at("cores_before");
  const double during = outcome.at("cores_during");
  // Where it shares a core with others, the scheduler makes up for pauses between stops: a quarter of the time it may
  // have the whole core.
  EXPECT_LT(during, cgroups ? 0.5 * before : std::min(0.95 * before, std::max(0.5 * before, 0.3)));
  EXPECT_GT(during, 0.05 * before);
  EXPECT_GT(outcome.at(cgroups ? "throttled_periods" : "stops"), 5);
  EXPECT_GE(outcome.at("ended").at("monotonic").get<double>() - outcome.at("started").at("monotonic").get<double>(),
            3.0);

  // Undone. How much it runs then is the machine's business: beside others a rank may be left half of a core.
  if (cgroups) {
    EXPECT_EQ(*tools::CpuCgroup(description.ranks[1].cgroup).quota(), free);
  } else {
    EXPECT_EQ(timesSeenStopped(description.ranks[1].process, 500ms), 0);
  }
}
INSTANTIATE_TEST_SUITE_P(WithAndWithoutCgroups, InjectSlowRank, testing::Bool());

TEST(Inject, IsUndoneWhenItIsKilled) {
  if (const auto reason = whyNoCgroups()) GTEST_SKIP() << *reason;
  TemporaryFolder folder;
  Started job(falconCommand({"run", "-n", "1", "--cgroups", "--describe", folder.file("job"), "--", probe(), "spin"}));
  const auto description = waitForDescription(folder.file("job"));
  ASSERT_EQ(description.ranks.size(), 1u);
  const tools::CpuCgroup cgroup(description.ranks[0].cgroup);
  const std::string free = *cgroup.quota();
  for (const int signal : {SIGKILL, SIGTERM, SIGINT}) {
    Started injection(inject({"slow-rank", "--describe", folder.file("job"), "--rank", "0", "--quota", "0.05"}));
    ASSERT_TRUE(eventually([&] { return *cgroup.quota() != free; }));
    const auto throttled = cgroup.throttling()->throttledPeriods;
    ASSERT_TRUE(eventually([&] { return cgroup.throttling()->throttledPeriods > throttled + 5; }));
    const auto guardians = tools::descendantsOf(injection.process());
    injection.signal(signal);
    // 1: on a very busy machine the rank had no more than this before.
    const int code = injection.wait();
    EXPECT_TRUE(signal == SIGKILL ? code == 137 : code == 0 || code == 1) << code << injection.errors();
    EXPECT_TRUE(eventually([&] { return *cgroup.quota() == free; })) << *cgroup.quota();
    awaitTheEndOf(guardians);
  }
}

TEST(Inject, SaysSoWhenTheRankCannotBeSlowed) {
  TemporaryFolder folder;
  Started job(falconCommand({"run", "-n", "2", "--describe", folder.file("job"), "--", "sleep", "1000"}));
  ASSERT_EQ(waitForDescription(folder.file("job")).ranks.size(), 2u);
  Started loop(inject({"slow-link", "--describe", folder.file("job"), "--from", "1", "--to", "1", "--rate", "1M",
                       "--throttle-file", folder.file("throttled")}));
  EXPECT_EQ(loop.wait(), 2);
  EXPECT_THAT(loop.errors(), HasSubstr("two ends"));
  Started idle(inject({"slow-rank", "--describe", folder.file("job"), "--rank", "0", "--factor", "2", "--for", "1"}));
  EXPECT_EQ(idle.wait(), 1);
  EXPECT_THAT(idle.errors(), HasSubstr("idle"));
  Started unknown(
      inject({"slow-rank", "--describe", folder.file("job"), "--rank", "5", "--factor", "2", "--for", "1"}));
  EXPECT_EQ(unknown.wait(), 2);
  EXPECT_THAT(unknown.errors(), HasSubstr("rank 5"));
  Started nowhere(inject({"slow-link", "--describe", folder.file("job"), "--from", "0", "--to", "1", "--rate", "1M"}));
  EXPECT_EQ(nowhere.wait(), 2);
  EXPECT_THAT(nowhere.errors(), HasSubstr("--nodes"));
}

TEST(InjectSlowLink, CapsOneDirectionOfOnePairOnly) {
  if (const auto reason = whyNoNodes()) GTEST_SKIP() << *reason;
  TemporaryFolder folder;
  Streams streams;
  // Ranks 0 and 1 on node 0, 2 and 3 on node 1. The pair 0-3 shares rank 0's interface, 1-2 shares rank 2's.
  Started job(falconCommand({"run", "-n", "4", "--nodes", "2", "--describe", folder.file("job"), "--", probe(),
                             "stream", streams.file(), "0-2", "2-0", "0-3", "1-2"}));
  const auto description = waitForDescription(folder.file("job"));
  ASSERT_EQ(description.ranks.size(), 4u);
  const std::vector<std::pair<int, int>> pairs{{0, 2}, {2, 0}, {0, 3}, {1, 2}};
  ASSERT_TRUE(eventually([&] {
    for (const auto& [from, to] : pairs)
      if (streams.received(from, to) == 0) return false;
    return true;
  })) << job.errors();
  for (const auto& [pair, rate] : streams.measure(pairs)) EXPECT_GT(rate, 60) << pair << " before";

  Started injection(
      inject({"slow-link", "--describe", folder.file("job"), "--from", "0", "--to", "2", "--rate", "10M", "--json"}));
  ASSERT_TRUE(eventually([&] { return queuesOf(description.ranks[0]).find("htb") != std::string::npos; }));
  std::this_thread::sleep_for(1500ms);  // what was in flight arrives
  auto during = streams.measure(pairs);
  EXPECT_LT(during["0-2"], 15);
  EXPECT_GT(during["0-2"], 3);
  for (const char* other : {"2-0", "0-3", "1-2"}) EXPECT_GT(during[other], 30) << other << " during";
  injection.signal(SIGTERM);
  EXPECT_EQ(injection.wait(), 0) << injection.errors();
  const auto outcome = nlohmann::json::parse(injection.output());
  EXPECT_EQ(outcome.at("from"), 0);
  EXPECT_EQ(outcome.at("to"), 2);
  EXPECT_FALSE(outcome.at("both_ways"));
  EXPECT_TRUE(outcome.at("effective"));
  EXPECT_GT(outcome.at("bytes"), 1'000'000);

  EXPECT_EQ(queuesOf(description.ranks[0]).find("htb"), std::string::npos);
  EXPECT_TRUE(eventually([&] { return streams.measure(pairs)["0-2"] > 60; })) << "after";
}

TEST(InjectSlowLink, CapsBothWaysAndASecondOneIsRefused) {
  if (const auto reason = whyNoNodes()) GTEST_SKIP() << *reason;
  TemporaryFolder folder;
  Streams streams;
  Started job(falconCommand({"run", "-n", "3", "--nodes", "3", "--describe", folder.file("job"), "--", probe(),
                             "stream", streams.file(), "0-1", "1-0", "0-2"}));
  const auto description = waitForDescription(folder.file("job"));
  ASSERT_EQ(description.ranks.size(), 3u);
  const std::vector<std::pair<int, int>> pairs{{0, 1}, {1, 0}, {0, 2}};
  ASSERT_TRUE(eventually(
      [&] { return streams.received(0, 1) > 0 && streams.received(1, 0) > 0 && streams.received(0, 2) > 0; }));
  Started both(inject({"slow-link", "--describe", folder.file("job"), "--from", "0", "--to", "1", "--both-ways",
                       "--rate", "10M", "--json"}));
  ASSERT_TRUE(eventually([&] { return queuesOf(description.ranks[1]).find("htb") != std::string::npos; }));
  Started second(inject(
      {"slow-link", "--describe", folder.file("job"), "--from", "0", "--to", "2", "--rate", "5M", "--for", "3"}));
  EXPECT_EQ(second.wait(), 1);
  EXPECT_THAT(second.errors(), HasSubstr("slow-link --from 0 --to 1 --both-ways;"));
  std::this_thread::sleep_for(1500ms);
  auto during = streams.measure(pairs);
  for (const char* slow : {"0-1", "1-0"}) EXPECT_LT(during[slow], 15) << slow;
  EXPECT_GT(during["0-2"], 30);
  both.signal(SIGKILL);
  both.wait();
  for (const int rank : {0, 1})
    EXPECT_TRUE(eventually(
        [&] { return queuesOf(description.ranks[static_cast<size_t>(rank)]).find("htb") == std::string::npos; }));
}

TEST(InjectSlowLink, LeavesQueuesOfOthersAlone) {
  if (const auto reason = whyNoNodes()) GTEST_SKIP() << *reason;
  TemporaryFolder folder;
  Started job(
      falconCommand({"run", "-n", "2", "--nodes", "2", "--describe", folder.file("job"), "--", "sleep", "1000"}));
  const auto description = waitForDescription(folder.file("job"));
  ASSERT_EQ(description.ranks.size(), 2u);
  const auto& rank = description.ranks[0];
  const auto netNamespace = tools::openNetNamespace(rank.netNamespace);
  ASSERT_TRUE(tools::runProgram(
      {{"tc", "qdisc", "add", "dev", rank.interface, "root", "handle", "1:", "htb"}, netNamespace->get()}));
  Started injection(inject(
      {"slow-link", "--describe", folder.file("job"), "--from", "0", "--to", "1", "--rate", "1M", "--for", "1"}));
  EXPECT_EQ(injection.wait(), 1);
  EXPECT_THAT(injection.errors(), HasSubstr("tc qdisc del dev " + rank.interface));
  EXPECT_THAT(queuesOf(rank), HasSubstr("htb 1: root"));
}

TEST(InjectSlowLink, LeavesThrottleLinesOfOthersAlone) {
  TemporaryFolder folder;
  Started job(falconCommand({"run", "-n", "3", "--describe", folder.file("job"), "--", "sleep", "1000"}));
  ASSERT_EQ(waitForDescription(folder.file("job")).ranks.size(), 3u);
  const std::string file = folder.file("throttled");
  const std::string foreign = "2 1 5000000\n";
  std::ofstream(file) << foreign;
  const auto slowLink = [&](const char* from, const char* to) {
    return inject({"slow-link", "--describe", folder.file("job"), "--from", from, "--to", to, "--rate", "8M",
                   "--throttle-file", file});
  };
  Started first(slowLink("0", "1"));
  ASSERT_TRUE(eventually([&] { return contentOf(file) == foreign + "0 1 1000000\n"; })) << contentOf(file);
  Started second(slowLink("1", "2"));
  EXPECT_EQ(second.wait(), 1);
  EXPECT_THAT(second.errors(), HasSubstr("slow-link --from 0 --to 1;"));
  EXPECT_EQ(contentOf(file), foreign + "0 1 1000000\n");
  const auto guardians = tools::descendantsOf(first.process());
  first.signal(SIGKILL);  // its guardian holds the link until it has undone
  EXPECT_TRUE(eventually([&] { return contentOf(file) == foreign; })) << contentOf(file);
  awaitTheEndOf(guardians);
  Started sameLink(slowLink("2", "1"));
  EXPECT_EQ(sameLink.wait(), 1);
  EXPECT_THAT(sameLink.errors(), HasSubstr("2 1 5000000"));
  EXPECT_EQ(contentOf(file), foreign);
}

TEST(InjectSlowLink, FailsWhereTheLinkCarriesNothing) {
  if (const auto reason = whyNoNodes()) GTEST_SKIP() << *reason;
  TemporaryFolder folder;
  Started job(
      falconCommand({"run", "-n", "2", "--nodes", "2", "--describe", folder.file("job"), "--", "sleep", "1000"}));
  ASSERT_EQ(waitForDescription(folder.file("job")).ranks.size(), 2u);
  Started injection(inject(
      {"slow-link", "--describe", folder.file("job"), "--from", "0", "--to", "1", "--rate", "1M", "--for", "1"}));
  EXPECT_EQ(injection.wait(), 1);
  EXPECT_THAT(injection.errors(), HasSubstr("no effect"));
}

TEST(InjectMemoryHog, RunsInsideTheRanksCgroup) {
  if (const auto reason = whyNoCgroups()) GTEST_SKIP() << *reason;
  TemporaryFolder folder;
  Started job(falconCommand({"run", "-n", "2", "--cgroups", "--describe", folder.file("job"), "--", probe(), "spin"}));
  const auto description = waitForDescription(folder.file("job"));
  ASSERT_EQ(description.ranks.size(), 2u);
  const tools::CpuCgroup cgroup(description.ranks[1].cgroup);
  Started injection(inject({"memory-hog", "--describe", folder.file("job"), "--rank", "1", "--json"}));
  EXPECT_TRUE(eventually([&] { return cgroup.processes().size() == 2; }));
  const auto used = [&] {
    Nanoseconds sum{0};
    for (const pid_t process : cgroup.processes())
      if (process != description.ranks[1].process) sum += tools::processorTimeOf(process).value_or(0ns);
    return sum;
  };
  EXPECT_TRUE(eventually([&] { return used() > 500ms; }));
  injection.signal(SIGTERM);
  EXPECT_EQ(injection.wait(), 0) << injection.errors();
  EXPECT_GT(nlohmann::json::parse(injection.output()).at("bytes"), 1'000'000);
  EXPECT_EQ(cgroup.processes().size(), 1u);
}

TEST(Inject, RefusesASecondOneOnTheSameRank) {
  TemporaryFolder folder;
  Started job(falconCommand({"run", "-n", "2", "--describe", folder.file("job"), "--", probe(), "spin"}));
  ASSERT_EQ(waitForDescription(folder.file("job")).ranks.size(), 2u);
  const auto inForce = [](const Started& injection) {
    return eventually([&] { return injection.errors().find("in force\n") != std::string::npos; });
  };
  Started hog(inject({"memory-hog", "--describe", folder.file("job"), "--rank", "1"}));
  ASSERT_TRUE(inForce(hog)) << hog.errors();
  Started second(inject({"slow-rank", "--describe", folder.file("job"), "--rank", "1", "--for", "1", "--factor", "2"}));
  EXPECT_EQ(second.wait(), 1);
  EXPECT_THAT(second.errors(), HasSubstr("already: memory-hog;"));
  // Hogs undo nothing: they may share a rank.
  Started another(inject({"memory-hog", "--describe", folder.file("job"), "--rank", "1"}));
  EXPECT_TRUE(inForce(another)) << another.errors();
  another.signal(SIGTERM);
  another.wait();
  Started elsewhere(inject({"memory-hog", "--describe", folder.file("job"), "--rank", "0"}));
  EXPECT_TRUE(inForce(elsewhere)) << elsewhere.errors();
  hog.signal(SIGTERM);
  EXPECT_EQ(hog.wait(), 0) << hog.errors();
  Started next(inject({"memory-hog", "--describe", folder.file("job"), "--rank", "1"}));
  EXPECT_TRUE(inForce(next)) << next.errors();
}

// The victim is the process, whichever way it was named.
TEST(Inject, RefusesASecondOneThatNamesTheRankOtherwise) {
  TemporaryFolder folder;
  Started job(falconCommand({"run", "-n", "2", "--describe", folder.file("job"), "--", probe(), "spin"}));
  const auto description = waitForDescription(folder.file("job"));
  ASSERT_EQ(description.ranks.size(), 2u);
  Started first(inject({"hang", "--describe", folder.file("job"), "--rank", "1"}));
  ASSERT_TRUE(eventually([&] { return tools::isStopped(description.ranks[1].process); })) << first.errors();
  Started second(inject({"memory-hog", "--pid", std::to_string(description.ranks[1].process), "--for", "1"}));
  EXPECT_EQ(second.wait(), 1);
  EXPECT_THAT(second.errors(), HasSubstr("already: hang;"));
  Started elsewhere(inject({"memory-hog", "--pid", std::to_string(description.ranks[0].process), "--for", "2"}));
  EXPECT_TRUE(eventually([&] { return elsewhere.errors().find("in force\n") != std::string::npos; }))
      << elsewhere.errors();
}

TEST(Inject, RefusesNumbersThatMeanNothing) {
  const std::vector<std::vector<std::string>> commands{
      {"slow-rank", "--rank", "0", "--quota", "1e30"},
      {"slow-rank", "--rank", "0", "--factor", "0.5"},
      {"slow-rank", "--rank", "0", "--factor", "2", "--for", "nan"},
      {"slow-link", "--from", "0", "--to", "1", "--rate", "0", "--throttle-file", "/nowhere"},
      {"slow-link", "--from", "0", "--to", "1", "--rate", "-5M", "--throttle-file", "/nowhere"},
      {"slow-link", "--from", "0", "--to", "1", "--slowdown", "nan", "--throttle-file", "/nowhere"},
  };
  for (auto words : commands) {
    words.insert(words.end(), {"--describe", "/no/such/job"});
    Started injection(inject(words));
    EXPECT_EQ(injection.wait(), 2) << words[5];
    EXPECT_THAT(injection.errors(), testing::Not(HasSubstr("/no/such/job")));
  }
}

TEST(Inject, EndsWithTheJob) {
  TemporaryFolder folder;
  Started job(falconCommand({"run", "-n", "1", "--describe", folder.file("job"), "--", probe(), "spin"}));
  ASSERT_EQ(waitForDescription(folder.file("job")).ranks.size(), 1u);
  Started injection(inject({"slow-rank", "--describe", folder.file("job"), "--rank", "0", "--factor", "2", "--json"}));
  ASSERT_TRUE(eventually([&] { return injection.errors().find("in force") != std::string::npos; }))
      << injection.errors();
  std::this_thread::sleep_for(1s);
  job.signal(SIGTERM);
  EXPECT_EQ(job.wait(), 143);
  EXPECT_EQ(injection.wait(), 0) << injection.errors();
  EXPECT_TRUE(nlohmann::json::parse(injection.output()).at("effective")) << injection.output();
}

}  // namespace
}  // namespace falcon::tests
