// `falcon run` as its users see it.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <set>

#include "base/owned.h"
#include "machine/cpu_cgroup.h"
#include "machine/program.h"
#include "multi_rank/run_harness.h"

namespace falcon::tests {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

std::vector<std::string> shell(int ranks, const std::string& script, std::vector<std::string> more = {}) {
  std::vector<std::string> words{"run", "-n", std::to_string(ranks)};
  words.insert(words.end(), more.begin(), more.end());
  words.insert(words.end(), {"--", "/bin/sh", "-c", script});
  return falconCommand(words);
}

std::multiset<std::string> sortedLines(const std::string& text) {
  const auto lines = linesOf(text);
  return {lines.begin(), lines.end()};
}

TEST(Run, SetsWhatTorchrunSets) {
  Started job(
      shell(
          3,
          "echo $RANK/$WORLD_SIZE $LOCAL_RANK/$LOCAL_WORLD_SIZE $MASTER_ADDR ${MASTER_PORT:+port} $NCCL_FALCON $MINE"),
      {{"MINE", "passed on"}, {"NCCL_FALCON", "0"}});
  EXPECT_EQ(job.wait(), 0);
  EXPECT_EQ(sortedLines(job.output()), (std::multiset<std::string>{"[0] 0/3 0/3 127.0.0.1 port 0 passed on",
                                                                   "[1] 1/3 1/3 127.0.0.1 port 0 passed on",
                                                                   "[2] 2/3 2/3 127.0.0.1 port 0 passed on"}));
}

TEST(Run, SwitchesFalconOnNamesTheJobAndPutsItsLibraryFirst) {
  Started job(shell(2, "echo $NCCL_FALCON $NCCL_FALCON_JOB; echo $LD_LIBRARY_PATH"), {{"LD_LIBRARY_PATH", "/mine"}});
  EXPECT_EQ(job.wait(), 0);
  const auto lines = sortedLines(job.output());
  std::set<std::string> jobs;
  for (const auto& line : lines) {
    if (line.find("/lib:/mine") == std::string::npos) jobs.insert(line.substr(4));
  }
  ASSERT_EQ(jobs.size(), 1u) << job.output();
  EXPECT_THAT(*jobs.begin(), StartsWith("1 run-"));
  const auto folder = std::filesystem::path(falconCommand({})[0]).parent_path().parent_path() / "lib";
  EXPECT_TRUE(lines.contains("[1] " + folder.string() + ":/mine")) << job.output();
}

TEST(Run, SaysNothingOfItsOwnWhenAllSucceed) {
  Started job(shell(4, "echo out; echo err >&2"));
  EXPECT_EQ(job.wait(), 0);
  EXPECT_EQ(sortedLines(job.output()), (std::multiset<std::string>{"[0] out", "[1] out", "[2] out", "[3] out"}));
  EXPECT_EQ(sortedLines(job.errors()), (std::multiset<std::string>{"[0] err", "[1] err", "[2] err", "[3] err"}));
}

TEST(Run, KeepsLinesWholeAndInOrderUnderConcurrentWriters) {
  constexpr int ranks = 4;
  constexpr int count = 1500;
  Started job(falconCommand({"run", "-n", std::to_string(ranks), "--", probe(), "lines", std::to_string(count)}));
  EXPECT_EQ(job.wait(), 0);
  std::map<int, int> next;
  for (const auto& line : linesOf(job.output())) {
    int prefix = -1;
    int rank = -1;
    int number = -1;
    if (std::sscanf(line.c_str(), "[%d] the end of %d", &prefix, &rank) == 2) {
      number = count;
    } else {
      ASSERT_EQ(std::sscanf(line.c_str(), "[%d] rank %d line %d ", &prefix, &rank, &number), 3) << line;
      ASSERT_TRUE(line.ends_with(" " + std::string(static_cast<size_t>(number * 7 % 300), 'x'))) << line;
    }
    ASSERT_EQ(prefix, rank);
    ASSERT_EQ(number, next[rank]++);
  }
  for (int rank = 0; rank < ranks; ++rank) EXPECT_EQ(next[rank], count + 1);
  EXPECT_EQ(job.output().back(), '\n');
}

TEST(Run, ReturnsTheJobsOwnCode) {
  Started alone(shell(1, "exit 7"));
  EXPECT_EQ(alone.wait(), 7);
  Started killed(shell(1, "kill -9 $$"));
  EXPECT_EQ(killed.wait(), 137);
  EXPECT_THAT(killed.errors(), HasSubstr("rank 0"));
  EXPECT_THAT(killed.errors(), HasSubstr("signal 9"));
}

TEST(Run, RefusesWhatCannotBe) {
  Started none(falconCommand({"run", "-n", "0", "--", "/bin/true"}));
  EXPECT_EQ(none.wait(), 2);
  EXPECT_THAT(none.errors(), HasSubstr("-n 0"));
  Started negative(falconCommand({"run", "-n", "-3", "--", "/bin/true"}));
  EXPECT_EQ(negative.wait(), 2);
  EXPECT_THAT(negative.errors(), HasSubstr("-n -3"));
  Started nowhere(falconCommand({"run", "-n", "2", "--nodes", "0", "--", "/bin/true"}));
  EXPECT_EQ(nowhere.wait(), 2);
  EXPECT_THAT(nowhere.errors(), HasSubstr("--nodes 0"));
  Started empty(falconCommand({"run", "-n", "2"}));
  EXPECT_EQ(empty.wait(), 2);
  Started unknown(falconCommand({"run", "-n", "2", "--bind", "sideways", "--", "/bin/true"}));
  EXPECT_EQ(unknown.wait(), 2);
  Started misspelt(falconCommand({"run", "-n", "2", "--bindd", "core", "--", "/bin/true"}));
  EXPECT_EQ(misspelt.wait(), 2);
  EXPECT_THAT(misspelt.errors(), HasSubstr("--bindd"));
}

TEST(Run, SaysWhichProgramCannotBeExecuted) {
  Started job(falconCommand({"run", "-n", "2", "--", "/no/such/program"}));
  EXPECT_EQ(job.wait(), 127);
  EXPECT_THAT(job.errors(), HasSubstr("/no/such/program"));
  EXPECT_EQ(linesOf(job.errors()).size(), 1u) << job.errors();
}

TEST(Run, LeavesTheProgramsOwnDashesAlone) {
  Started job(shell(1, "echo $0 $*"));
  EXPECT_EQ(job.wait(), 0);
  Started dashes(falconCommand({"run", "-n", "1", "--", "/bin/echo", "a", "--", "-n", "7", "--help"}));
  EXPECT_EQ(dashes.wait(), 0);
  EXPECT_EQ(dashes.output(), "[0] a -- -n 7 --help\n");
  Started without(falconCommand({"run", "-n", "1", "/bin/echo", "a", "--", "-n", "7"}));
  EXPECT_EQ(without.wait(), 0);
  EXPECT_EQ(without.output(), "[0] a -- -n 7\n");
}

TEST(Run, EndsTheOthersWhenOneDies) {
  Started job(shell(3, "trap 'echo asked; exit 5' TERM; [ $RANK = 1 ] && exit 3; while :; do sleep 0.1; done"));
  EXPECT_EQ(job.wait(), 3);
  EXPECT_EQ(sortedLines(job.output()), (std::multiset<std::string>{"[0] asked", "[2] asked"}));
  EXPECT_THAT(job.errors(), HasSubstr("rank 1"));
  EXPECT_THAT(job.errors(), HasSubstr("code 3"));
}

TEST(Run, PassesSignalsOn) {
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGALRM, SIGUSR1, SIGUSR2}) {
    TemporaryFolder folder;
    Started job(shell(
        2, "trap 'echo heard; exit 0' TERM INT HUP QUIT ALRM USR1 USR2; echo ready; while :; do sleep 0.1; done"));
    ASSERT_TRUE(eventually([&] { return linesOf(job.output()).size() == 2; }));
    job.signal(signal);
    EXPECT_EQ(job.wait(), 0) << signal;
    EXPECT_EQ(sortedLines(job.output()),
              (std::multiset<std::string>{"[0] heard", "[0] ready", "[1] heard", "[1] ready"}));
  }
}

TEST(Run, TheSecondInterruptKills) {
  Started job(shell(2, "trap 'echo no' INT; echo ready; while :; do sleep 0.1; done"));
  ASSERT_TRUE(eventually([&] { return linesOf(job.output()).size() == 2; }));
  job.signal(SIGINT);
  ASSERT_TRUE(eventually([&] { return linesOf(job.output()).size() == 4; }));
  job.signal(SIGINT);
  EXPECT_EQ(job.wait(), 137);
}

TEST(Run, AReaderThatGoesAwayEndsTheJobAsWithoutUs) {
  Started job({"/bin/sh", "-c", falconCommand({})[0] + " run -n 2 -- yes | head -n 1; echo done"});
  EXPECT_EQ(job.wait(), 0);
  EXPECT_THAT(job.output(), HasSubstr("] y\ndone\n"));
}

TEST(Run, SaysThatOutputIsLostAndLetsTheJobEndByItself) {
  TemporaryFolder folder;
  const std::string falcon = falconCommand({})[0];
  Started job({"/bin/sh", "-c",
               falcon + " run -n 2 -- sh -c 'echo first; sleep 0.2; echo second; touch " + folder.file("$RANK") +
                   "' >/dev/full"});
  EXPECT_EQ(job.wait(), 1);
  EXPECT_THAT(job.errors(), HasSubstr("No space left"));
  EXPECT_EQ(linesOf(job.errors()).size(), 1u) << job.errors();
  for (const char* rank : {"0", "1"}) EXPECT_TRUE(std::filesystem::exists(folder.file(rank)));
  Started failing({"/bin/sh", "-c", falcon + " run -n 1 -- sh -c 'echo; exit 5' >/dev/full"});
  EXPECT_EQ(failing.wait(), 5);
}

// Whoever is killed, nothing is left: not even children that put themselves into sessions of their own.
class RunKilled : public testing::TestWithParam<bool> {};

TEST_P(RunKilled, LeavesNothingBehind) {
  const bool killSupervisor = GetParam();
  const bool nodes = !whyNoNodes();
  const bool cgroups = !whyNoCgroups();
  TemporaryFolder folder;
  std::vector<std::string> more{"--describe", folder.file("job")};
  if (nodes) more.insert(more.end(), {"--nodes", "2"});
  if (cgroups) more.push_back("--cgroups");
  Started job(shell(2, "setsid sleep 1000 & echo $!; wait", more));
  const auto description = waitForDescription(folder.file("job"));
  ASSERT_EQ(description.ranks.size(), 2u);
  ASSERT_TRUE(eventually([&] { return linesOf(job.output()).size() == 2; }));

  std::set<pid_t> processes{description.launcher, description.supervisor};
  for (const auto& rank : description.ranks) processes.insert(rank.process);
  for (const auto& line : linesOf(job.output())) processes.insert(std::stoi(line.substr(4)));
  ASSERT_EQ(processes.size(), 6u);
  // Held here to the end: the kernel would give the number of one that is gone to another test's.
  std::vector<FileDescriptor> held;
  std::set<std::string> namespaces;
  if (nodes)
    for (const auto& rank : description.ranks) {
      const std::string file = "/proc/" + std::to_string(rank.process) + "/ns/net";
      held.emplace_back(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
      ASSERT_TRUE(held.back()) << file;
      namespaces.insert(std::filesystem::read_symlink(file));
    }
  EXPECT_EQ(namespaces.size(), nodes ? 2u : 0u);

  ::kill(killSupervisor ? description.supervisor : description.launcher, SIGKILL);
  EXPECT_EQ(job.wait(), killSupervisor ? 1 : 137);
  for (const pid_t process : processes) EXPECT_TRUE(eventually([&] { return !isAlive(process); })) << process;
  if (cgroups) {
    const auto group = std::filesystem::path(description.ranks[0].cgroup).parent_path();
    EXPECT_TRUE(eventually([&] { return !std::filesystem::exists(group); })) << group;
  }
  // A namespace lives as long as a process is in it or holds a descriptor of it, as this one does.
  for (const auto& process : std::filesystem::directory_iterator("/proc")) {
    const std::string name = process.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos || name == std::to_string(::getpid())) continue;
    std::error_code gone;
    const auto in = std::filesystem::read_symlink(process.path() / "ns/net", gone);
    EXPECT_FALSE(!gone && namespaces.contains(in)) << process.path();
    for (const auto& open : std::filesystem::directory_iterator(process.path() / "fd", gone))
      EXPECT_FALSE(namespaces.contains(std::filesystem::read_symlink(open.path(), gone))) << open.path();
  }
}
INSTANTIATE_TEST_SUITE_P(LauncherOrSupervisor, RunKilled, testing::Bool());

// With nobody left to clean up, processes and namespaces still go by themselves, and the next run removes the cgroup.
TEST(Run, ANextRunRemovesTheCgroupsOfOneThatWasKilledAltogether) {
  if (const auto reason = whyNoCgroups()) GTEST_SKIP() << *reason;
  TemporaryFolder folder;
  Started job(shell(2, "exec sleep 1000", {"--cgroups", "--describe", folder.file("job")}));
  const auto description = waitForDescription(folder.file("job"));
  ASSERT_EQ(description.ranks.size(), 2u);
  const auto group = std::filesystem::path(description.ranks[0].cgroup).parent_path();
  job.signal(SIGSTOP);  // or it would clean up between the two
  ::kill(description.supervisor, SIGKILL);
  job.signal(SIGKILL);
  EXPECT_EQ(job.wait(), 137);
  for (const auto& rank : description.ranks) EXPECT_TRUE(eventually([&] { return !isAlive(rank.process); }));
  EXPECT_TRUE(std::filesystem::exists(group));
  Started next(shell(1, "true", {"--cgroups"}));
  EXPECT_EQ(next.wait(), 0);
  EXPECT_FALSE(std::filesystem::exists(group));
}

TEST(Run, DoesNotLeaveARanksChildrenBehindEither) {
  Started job(shell(2, "setsid sleep 1000 & echo $!"));
  EXPECT_EQ(job.wait(), 0);
  const auto lines = linesOf(job.output());
  ASSERT_EQ(lines.size(), 2u);
  for (const auto& line : lines) EXPECT_FALSE(isAlive(std::stoi(line.substr(4))));
}

TEST(Run, BindsRanksToCoresThatAreTheirsAlone) {
  cpu_set_t usable;
  ASSERT_EQ(::sched_getaffinity(0, sizeof usable, &usable), 0);
  const int cores = CPU_COUNT(&usable);
  const std::string script = "grep Cpus_allowed_list /proc/self/status | cut -f2";
  Started bound(shell(cores, script));
  EXPECT_EQ(bound.wait(), 0);
  std::set<std::string> lists;
  for (const auto& line : linesOf(bound.output())) lists.insert(line.substr(line.find(' ')));
  EXPECT_EQ(lists.size(), static_cast<size_t>(cores)) << bound.output();
  for (const auto& words : {shell(cores, script, {"--bind", "none"}), shell(cores + 1, script)}) {
    Started free(words);
    EXPECT_EQ(free.wait(), 0);
    lists.clear();
    for (const auto& line : linesOf(free.output())) lists.insert(line.substr(line.find(' ')));
    EXPECT_EQ(lists.size(), 1u) << free.output();
  }
}

TEST(Run, PutsEveryRankIntoACgroupOfItsOwn) {
  if (const auto reason = whyNoCgroups()) GTEST_SKIP() << *reason;
  TemporaryFolder folder;
  Started job(shell(3, "sleep 1000", {"--cgroups", "--describe", folder.file("job")}));
  const auto description = waitForDescription(folder.file("job"));
  ASSERT_EQ(description.ranks.size(), 3u);
  std::set<std::string> groups;
  for (const auto& rank : description.ranks) {
    groups.insert(rank.cgroup);
    const auto inside = tools::CpuCgroup(rank.cgroup).processes();
    EXPECT_TRUE(std::find(inside.begin(), inside.end(), rank.process) != inside.end()) << rank.cgroup;
  }
  EXPECT_EQ(groups.size(), 3u);
  const auto parent = std::filesystem::path(description.ranks[0].cgroup).parent_path();
  const bool first = tools::CpuCgroup(parent).version() == 1;
  EXPECT_EQ(contentOf(parent / (first ? "cpu.shares" : "cpu.weight")), first ? "3072\n" : "300\n");
  EXPECT_EQ(contentOf(description.ranks[1].cgroup + (first ? "/cpu.shares" : "/cpu.weight")),
            first ? "1024\n" : "100\n");
  job.signal(SIGTERM);
  EXPECT_EQ(job.wait(), 143);
  EXPECT_FALSE(std::filesystem::exists(parent));
}

TEST(Run, NodesGiveEveryRankAnAddressOfItsOwn) {
  if (const auto reason = whyNoNodes()) GTEST_SKIP() << *reason;
  Started job(shell(4, "echo $LOCAL_RANK/$LOCAL_WORLD_SIZE ${NCCL_HOSTID%%-*} $NCCL_SOCKET_IFNAME $MASTER_ADDR",
                    {"--nodes", "2"}));
  EXPECT_EQ(job.wait(), 0);
  EXPECT_EQ(sortedLines(job.output()),
            (std::multiset<std::string>{"[0] 0/2 node0 =rank0 10.211.0.10", "[1] 1/2 node0 =rank1 10.211.0.10",
                                        "[2] 0/2 node1 =rank2 10.211.0.10", "[3] 1/2 node1 =rank3 10.211.0.10"}));
}

// Received and sent bytes of a rank's interface, as it sees them itself.
struct Bytes {
  long received = 0;
  long sent = 0;
};
std::map<int, Bytes> bytesOfInterfaces(const std::string& output) {
  std::map<int, Bytes> found;
  for (const auto& line : linesOf(output)) {
    int rank = -1;
    Bytes bytes;
    if (std::sscanf(line.c_str(), "[%d] counted %ld %ld", &rank, &bytes.received, &bytes.sent) == 3)
      found[rank] = bytes;
  }
  return found;
}

TEST(Run, TrafficOfTwoRanksPassesTheirOwnInterfacesOnly) {
  if (const auto reason = whyNoNodes()) GTEST_SKIP() << *reason;
  constexpr long megabytes = 8'000'000;
  TemporaryFolder folder;
  // What one has sent has left its interface when the other one has it all.
  // /proc/net/dev: "rank1: received-bytes 7 more sent-bytes ..."
  const std::string script =
      probe() + " send 8000000 1-2 2-1 || exit 1; touch " + folder.file("$RANK") + "; until [ -e " + folder.file("1") +
      " ] && [ -e " + folder.file("2") +
      " ]; do sleep 0.1; done; "
      "sed -n \"s/^ *rank$RANK: *//p\" /proc/net/dev | { read in b c d e f g h out rest; echo counted $in $out; }";
  Started job(shell(6, script, {"--nodes", "3"}));
  ASSERT_EQ(job.wait(), 0) << job.errors();
  auto bytes = bytesOfInterfaces(job.output());
  ASSERT_EQ(bytes.size(), 6u) << job.output();
  // Ranks 1 (node 0) and 2 (node 1) share their nodes with 0 and 3.
  for (const int rank : {1, 2}) {
    EXPECT_GT(bytes[rank].received, megabytes) << job.output();
    EXPECT_GT(bytes[rank].sent, megabytes) << job.output();
  }
  for (const int rank : {0, 3, 4, 5}) {
    EXPECT_LT(bytes[rank].received, megabytes / 20) << job.output();
    EXPECT_LT(bytes[rank].sent, megabytes / 20) << job.output();
  }
}

TEST(Falcon, NamesTheWordItDoesNotKnowAndTheCommandsThatItDoes) {
  Started unknown(falconCommand({"nope"}));
  EXPECT_EQ(unknown.wait(), 2);
  EXPECT_EQ(unknown.output(), "");
  for (const char* expected : {"'nope'", "run, ", "doctor"})
    EXPECT_NE(unknown.errors().find(expected), std::string::npos) << unknown.errors();
  Started option(falconCommand({"perf", "--nope"}));
  EXPECT_EQ(option.wait(), 2);
  for (const char* expected : {"falcon perf: ", "--nope", "falcon perf --help"})
    EXPECT_NE(option.errors().find(expected), std::string::npos) << option.errors();
}

TEST(Run, TwoJobsWithNodesDoNotMeet) {
  if (const auto reason = whyNoNodes()) GTEST_SKIP() << *reason;
  const std::string script = probe() + " send 1000000 0-1 1-0";
  Started first(shell(2, script, {"--nodes", "2"}));
  Started second(shell(2, script, {"--nodes", "2"}));
  EXPECT_EQ(first.wait(), 0) << first.errors();
  EXPECT_EQ(second.wait(), 0) << second.errors();
}

}  // namespace
}  // namespace falcon::tests
