// `falcon doctor` and `falcon probe` for real, small.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "machine/processes.h"
#include "multi_rank/run_harness.h"

namespace falcon::tests {
namespace {

using testing::HasSubstr;
namespace fs = std::filesystem;

// Whether somebody is slow depends on what else this machine does: both codes are right, but must fit what is said.
TEST(Doctor, MeasuresItsOwnRanksAndSaysSo) {
  TemporaryFolder folder;
  fs::create_directory(folder.file("temporary"));
  std::ofstream(folder.file("neighbours")) << "left: 0 1\nright\xe9: 2 3\n";  // no UTF-8, as JSON must be
  Started doctor(
      falconCommand({"doctor", "-n", "4", "--repeat", "2", "--neighbours", folder.file("neighbours"), "--json"}),
      {{"TMPDIR", folder.file("temporary")}});
  const int code = doctor.wait();
  ASSERT_THAT(code, testing::AnyOf(0, 3)) << doctor.errors();
  const auto said = nlohmann::json::parse(doctor.output());
  EXPECT_EQ(said.at("healthy"), code == 0);
  EXPECT_EQ(said.at("slow").empty(), code == 0);
  ASSERT_EQ(said.at("ranks").size(), 4u);
  for (const auto& rank : said.at("ranks"))
    for (const char* figure : {"f32_gflops", "f64_gflops", "memory_bytes_per_s", "loopback_bytes_per_s", "processors"})
      EXPECT_GT(rank.at(figure), 0) << figure;
  EXPECT_GE(said.at("links").size(), 24u);  // 12 of them, twice
  for (const auto& link : said.at("links")) EXPECT_EQ(link.at("status"), "measured");
  EXPECT_EQ(said.at("link_types").size(), 1u);
  EXPECT_GT(said.at("link_types").at(0).at("variation"), 0);
  EXPECT_EQ(said.at("switches").size(), 2u);
  EXPECT_TRUE(fs::is_empty(folder.file("temporary")));
}

TEST(Doctor, SaysThatASignalEndedIt) {
  Started doctor(falconCommand({"doctor", "-n", "4", "--repeat", "1000"}));
  const auto ranksRun = [&] { return tools::descendantsOf(doctor.process()).size() >= 5; };  // and the supervisor
  ASSERT_TRUE(eventually(ranksRun)) << doctor.errors();
  doctor.signal(SIGINT);
  EXPECT_EQ(doctor.wait(), 128 + SIGINT);
  EXPECT_EQ(doctor.errors(), "falcon doctor: ended by signal 2\n");
}

TEST(Doctor, RunsAsRanksOfALauncher) {
  Started job(falconCommand({"run", "-n", "2", "--", falconCommand({})[0], "doctor"}));
  EXPECT_THAT(job.wait(), testing::AnyOf(0, 3)) << job.errors();
  EXPECT_THAT(job.output(), HasSubstr("2 ranks on 1 nodes"));
}

TEST(Doctor, RefusesWrongOptions) {
  TemporaryFolder folder;
  std::ofstream(folder.file("neighbours")) << "0 7\n";
  for (const auto& words : std::vector<std::vector<std::string>>{{"doctor", "--repeat", "0"},
                                                                 {"doctor", "--nodes", "2"},
                                                                 {"doctor", "-n", "2", "--nodes", "3"},
                                                                 {"doctor", "--attach", ""},
                                                                 {"inject", "hang", "--job", "", "--rank", "0"},
                                                                 {"doctor", "--neighbours", "/nowhere"},
                                                                 {"probe"},
                                                                 {"probe", "--history", "x", "--count", "-1"}}) {
    Started command(falconCommand(words));
    EXPECT_EQ(command.wait(), 2) << command.errors();
  }
  Started command(falconCommand({"doctor", "-n", "2", "--neighbours", folder.file("neighbours")}));
  EXPECT_EQ(command.wait(), 2);
  EXPECT_THAT(command.errors(), HasSubstr("line 1"));
}

TEST(Probe, KeepsAHistoryAndComparesWithIt) {
  TemporaryFolder folder;
  const std::string file = folder.file("history");
  const auto probe = [&] {
    return falconCommand({"probe", "--history", file, "--count", "2", "--every", "0", "--iterations", "5"});
  };
  Started first(probe());
  EXPECT_EQ(first.wait(), 0) << first.errors();
  auto lines = linesOf(contentOf(file));
  ASSERT_EQ(lines.size(), 2u);
  // A past in which this machine was a thousand times faster: now it is slow.
  auto record = nlohmann::json::parse(lines[1]);
  EXPECT_EQ(record.at("ranks"), 2);
  record["iteration_s"] = record.at("iteration_s").get<double>() / 1000;
  {
    std::ofstream history(file, std::ios::trunc);
    for (int i = 0; i < 6; ++i) history << record.dump() << '\n';
  }
  Started second(probe());
  EXPECT_EQ(second.wait(), 3) << second.errors();
  EXPECT_THAT(second.output(), HasSubstr("SLOW"));
  lines = linesOf(contentOf(file));
  ASSERT_EQ(lines.size(), 8u);
  EXPECT_TRUE(nlohmann::json::parse(lines[7]).at("slow"));
}

TEST(Probe, EndsAtASignalBetweenRunsToo) {
  TemporaryFolder folder;
  Started probe(falconCommand(
      {"probe", "--history", folder.file("history"), "--count", "2", "--every", "3600", "--iterations", "5"}));
  ASSERT_TRUE(eventually([&] { return !probe.output().empty(); })) << probe.errors();
  probe.signal(SIGTERM);
  EXPECT_TRUE(eventually([&] { return !probe.running(); }));
}

TEST(Probe, EndsAtASignalInARun) {
  TemporaryFolder folder;
  Started probe(falconCommand({"probe", "--history", folder.file("history"), "--iterations", "1000000"}));
  const auto ranksRun = [&] { return tools::descendantsOf(probe.process()).size() >= 3; };  // and the supervisor
  ASSERT_TRUE(eventually(ranksRun)) << probe.errors();
  probe.signal(SIGTERM);
  EXPECT_EQ(probe.wait(), 128 + SIGTERM);
  EXPECT_THAT(probe.errors(), HasSubstr("ended by signal 15"));
  EXPECT_FALSE(fs::exists(folder.file("history")));
}

/// A program that spins, of nobody's job.
std::vector<std::string> spinning() {
  return {"/bin/sh", "-c", "while :; do :; done"};
}

TEST(InjectAnybody, SlowsAProcessThatNobodyDescribed) {
  Started victim(spinning());
  Started injection(falconCommand(
      {"inject", "slow-rank", "--pid", std::to_string(victim.process()), "--factor", "4", "--for", "2", "--json"}));
  EXPECT_EQ(injection.wait(), 0) << injection.errors();
  const auto outcome = nlohmann::json::parse(injection.output());
  EXPECT_TRUE(outcome.at("effective"));
  EXPECT_GT(outcome.at("stops"), 2);
  EXPECT_TRUE(eventually([&] { return !tools::isStopped(victim.process()); }));
}

class InjectHang : public testing::TestWithParam<int> {};

TEST_P(InjectHang, EndsWithTheCommandHoweverThatEnds) {
  Started victim(spinning());
  const std::string process = std::to_string(victim.process());
  Started injection(falconCommand({"inject", "hang", "--pid", process}));
  ASSERT_TRUE(eventually([&] { return tools::isStopped(victim.process()); })) << injection.errors();
  Started second(falconCommand({"inject", "slow-rank", "--pid", process, "--factor", "2"}));
  EXPECT_EQ(second.wait(), 1);
  EXPECT_THAT(second.errors(), HasSubstr("in force on process " + process + " already: hang;"));
  EXPECT_TRUE(tools::isStopped(victim.process()));
  injection.signal(GetParam());
  const int code = injection.wait();
  EXPECT_EQ(code, GetParam() == SIGTERM ? 0 : 128 + SIGKILL) << injection.errors();
  EXPECT_TRUE(eventually([&] { return !tools::isStopped(victim.process()); }));
}
INSTANTIATE_TEST_SUITE_P(Signals, InjectHang, testing::Values(SIGTERM, SIGKILL));

// Else the victim would stay stopped as long as the injection was to last.
TEST(InjectAnybody, EndsWhereItsGuardianWasKilled) {
  Started victim(spinning());
  Started injection(falconCommand({"inject", "hang", "--pid", std::to_string(victim.process())}));
  ASSERT_TRUE(eventually([&] { return tools::isStopped(victim.process()); })) << injection.errors();
  for (const pid_t guardian : tools::descendantsOf(injection.process())) ::kill(guardian, SIGKILL);
  EXPECT_TRUE(eventually([&] { return !injection.running(); }));
  EXPECT_TRUE(eventually([&] { return !tools::isStopped(victim.process()); }));
  EXPECT_THAT(injection.errors(), HasSubstr("was killed: undone now"));
}

TEST(InjectAnybody, IsNotInjectedWhereASignalComesWhileTheVictimIsWatched) {
  Started victim(spinning());
  const std::string process = std::to_string(victim.process());
  Started injection(falconCommand({"inject", "slow-rank", "--pid", process, "--factor", "2"}));
  const auto isWatching = [&] {  // signals are blocked, the victim is claimed
    std::error_code ignored;
    for (const auto& entry : fs::directory_iterator("/proc/" + std::to_string(injection.process()) + "/fd", ignored))
      if (fs::read_symlink(entry.path(), ignored) == "/proc/" + process + "/comm") return true;
    return false;
  };
  ASSERT_TRUE(eventually(isWatching)) << injection.errors();
  injection.signal(SIGINT);
  EXPECT_EQ(injection.wait(), 128 + SIGINT);
  EXPECT_THAT(injection.errors(), HasSubstr("not injected: ended by signal 2"));
  EXPECT_EQ(injection.output(), "");
}

TEST(InjectAnybody, RefusesWhatIsNotOnesOwn) {
  const auto refused = [](const std::vector<std::string>& words) {
    Started injection(falconCommand(words));
    EXPECT_EQ(injection.wait(), 2) << injection.errors();
    return injection.errors();
  };
  // One more than the greatest number of any kernel.
  EXPECT_THAT(refused({"inject", "hang", "--pid", "4194304"}), HasSubstr("there is no process"));
  EXPECT_THAT(refused({"inject", "hang", "--pid", std::to_string(::getpid())}), HasSubstr("started this command"));
  EXPECT_THAT(refused({"inject", "hang", "--job", "no-such-job", "--rank", "0"}), HasSubstr("no running job"));
  refused({"inject", "hang", "--pid", "1", "--rank", "0"});
  refused({"inject", "hang", "--job", "x"});
  refused({"inject", "hang"});
  if (::geteuid() != 0) {
    EXPECT_THAT(refused({"inject", "hang", "--pid", "1"}), HasSubstr("only own processes"));
    return;
  }
  Started foreign({"/bin/sh", "-c", "exec setpriv --reuid=65534 --regid=65534 --clear-groups sleep 60"});
  const auto isAsleep = [&] { return contentOf("/proc/" + std::to_string(foreign.process()) + "/comm") == "sleep\n"; };
  if (!eventually([&] { return isAsleep() || !foreign.running(); }) || !foreign.running())
    GTEST_SKIP() << "no process of another user can be started here";
  EXPECT_THAT(refused({"inject", "hang", "--pid", std::to_string(foreign.process())}), HasSubstr("only own processes"));
}

}  // namespace
}  // namespace falcon::tests
