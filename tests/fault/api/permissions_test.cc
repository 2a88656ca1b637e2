// What a container, another user or a security policy forbids costs speed, and nothing else.
#include <gmock/gmock.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cerrno>

#include "harness/api_rank.h"
#include "harness/forbid_call.h"

namespace falcon::test {
namespace {

constexpr int permissionsRanks = 3;

bool becomeUser(unsigned number) {
  return setgroups(0, nullptr) == 0 && setresgid(number, number, number) == 0 && setresuid(number, number, number) == 0;
}

/// Every rank says whether it may; true where all may.
bool allMay(const SharedBoard& board, int rank, bool may) {
  board.reach(rank, may ? 1 : 2);
  for (int other = 0; other < permissionsRanks; ++other) {
    board.waitFor(other, 1);
    if (board->steps[other].load() != 1) return false;
  }
  return true;
}

/// A communicator of all ranks, its sums, and its end.
std::string worksTogether(SharedBoard& board, int rank) {
  ncclComm_t comm = nullptr;
  if (auto wrong = makeCommunicator(board, 0, rank, permissionsRanks, comm); !wrong.empty()) return wrong;
  if (auto wrong = sumsAreRight(comm, rank, permissionsRanks); !wrong.empty()) return wrong;
  return ncclCommDestroy(comm) == ncclSuccess ? "" : "destroy";
}

/// All ranks run `before` first; "" goes on, all else is why it is not permitted here.
void expectRightResults(const std::vector<std::unique_ptr<LogFile>>& logs,
                        const std::function<std::string(int rank)>& before) {
  SharedBoard board;
  ForkedRanks forked(permissionsRanks, [&](int rank) -> std::string {
    logs[rank]->use("INFO");
    const std::string obstacle = before(rank);
    if (!allMay(board, rank, obstacle.empty())) return "not permitted: " + obstacle;
    return worksTogether(board, rank);
  });
  for (int rank = 0; rank < permissionsRanks; ++rank) {
    const auto& outcome = forked.wait(rank, Seconds(60));
    if (outcome.report.starts_with("not permitted")) GTEST_SKIP() << outcome.report;
    EXPECT_TRUE(outcome.ended) << "rank " << rank << " hangs";
    EXPECT_EQ(outcome.report, "") << "rank " << rank;
    EXPECT_EQ(outcome.exitCode, 0) << "rank " << rank << ": signal " << outcome.signal;
  }
}

class WithoutAttach : public testing::TestWithParam<int> {};

TEST_P(WithoutAttach, ResultsAreRightAndItIsSaidOnce) {
  const int forbidden = GetParam();  // how many ranks may not
  const auto logs = logsOf(permissionsRanks);
  expectRightResults(
      logs, [&](int rank) { return rank >= forbidden || forbidCrossMemoryAttach(EPERM) ? "" : "no seccomp filter"; });
  if (IsSkipped()) return;
  for (int rank = 0; rank < forbidden; ++rank) {
    const std::string log = logs[rank]->text();
    EXPECT_EQ(countOf(log, "cannot be read"), 1u) << log;
    EXPECT_EQ(countOf(log, "sockets are used"), 0u) << log;  // shared memory is still there
  }
}
INSTANTIATE_TEST_SUITE_P(Ranks, WithoutAttach, testing::Values(1, permissionsRanks));

TEST(Permissions, RanksOfDifferentUsersWorkTogether) {
  const auto logs = logsOf(permissionsRanks);
  if (geteuid() != 0) GTEST_SKIP() << "only root can become other users";
  expectRightResults(logs, [](int rank) { return rank == 0 || becomeUser(65000 + rank) ? "" : "setresuid"; });
}

TEST(Permissions, RanksThatMayNotBeTracedWorkTogether) {
  const auto logs = logsOf(permissionsRanks);
  if (geteuid() != 0) GTEST_SKIP() << "needs root to become a user without rights over its own kind";
  // As of a program with set-user-id or file capabilities: /proc/<pid> belongs to root.
  expectRightResults(logs, [](int rank) {
    return becomeUser(65000) && (rank == 0 || prctl(PR_SET_DUMPABLE, 0) == 0) ? "" : "setresuid";
  });
}

/// A file size limit is one on shared memory too, and exceeding it would be a deadly signal.
TEST(Permissions, ALimitOfFileSizesLeavesSockets) {
  const auto logs = logsOf(permissionsRanks);
  expectRightResults(logs, [](int rank) {
    const rlimit tiny{1000, 1000};
    // The log would be one of those files.
    unsetenv("NCCL_DEBUG_FILE");
    setenv("NCCL_DEBUG", "VERSION", 1);
    return rank != 1 || setrlimit(RLIMIT_FSIZE, &tiny) == 0 ? "" : "setrlimit";
  });
}

/// The child of a fork is in the new namespace; it does the rank's work.
template <class Body>
std::string inNewProcess(const Body& body) {
  int ends[2];
  if (pipe(ends) != 0) return "no pipe";
  const pid_t child = fork();
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    const std::string report = body();
    [[maybe_unused]] const auto written = write(ends[1], report.data(), report.size());
    _exit(0);
  }
  close(ends[1]);
  std::string report;
  char buffer[1024];
  for (ssize_t got; (got = read(ends[0], buffer, sizeof buffer)) > 0;) report.append(buffer, got);
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? report : "signal " + std::to_string(WTERMSIG(status));
}

void expectRightResultsInNamespaces(int flags, const std::function<std::string(int rank)>& inside = {}) {
  SharedBoard board;
  ForkedRanks forked(permissionsRanks, [&](int rank) -> std::string {
    const bool permitted = rank == 0 || unshare(flags) == 0;
    if (!allMay(board, rank, permitted)) return "not permitted";
    return inNewProcess([&]() -> std::string {
      if (inside)
        if (auto wrong = inside(rank); !wrong.empty()) return wrong;
      return worksTogether(board, rank);
    });
  });
  for (int rank = 0; rank < permissionsRanks; ++rank) {
    const auto& outcome = forked.wait(rank, Seconds(60));
    if (outcome.report == "not permitted") GTEST_SKIP() << "namespaces are not permitted here";
    EXPECT_TRUE(outcome.ended) << "rank " << rank << " hangs";
    EXPECT_EQ(outcome.report, "") << "rank " << rank;
  }
}

/// Two ranks have the same process id there, and ids of the first rank's namespace mean somebody else or nobody.
TEST(Namespaces, OfProcessesAreNoObstacle) {
  expectRightResultsInNamespaces(CLONE_NEWPID);
}

/// With a /proc of its own, a rank's own descriptors are found under the other ranks' process ids.
TEST(Namespaces, OfProcessesWithTheirOwnProcAreNoObstacle) {
  expectRightResultsInNamespaces(CLONE_NEWPID | CLONE_NEWNS, [](int rank) -> std::string {
    if (rank == 0) return "";
    mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr);
    return mount("proc", "/proc", "proc", 0, nullptr) == 0 ? "" : "not permitted";
  });
}

/// What is wrong with a rank's own /dev/shm, and what Falcon then says of it.
struct BadSharedMemory {
  const char* name;
  const char* mountOptions;
  unsigned long mountFlags;
  std::function<bool()> spoil;
  const char* said;
};

std::string jobsFolder() {
  return "/dev/shm/nccl-falcon-" + std::to_string(getuid());
}

class SharedMemory : public testing::TestWithParam<BadSharedMemory> {};

/// Falcon cannot write there. It says so once, and the job goes on.
TEST_P(SharedMemory, ThatCannotBeUsedIsNoObstacle) {
  const auto logs = logsOf(permissionsRanks);
  expectRightResultsInNamespaces(CLONE_NEWNS | CLONE_NEWIPC, [&](int rank) -> std::string {
    logs[rank]->use("WARN");
    setenv("NCCL_FALCON", "1", 1);
    setenv("NCCL_FALCON_JOB", ("falcon-fault-" + std::to_string(getppid())).c_str(), 1);
    if (rank == 0) return setenv("NCCL_FALCON", "0", 1) == 0 ? "" : "setenv";
    mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr);
    const auto& bad = GetParam();
    if (mount("tmpfs", "/dev/shm", "tmpfs", bad.mountFlags, bad.mountOptions) != 0) return "not permitted";
    return bad.spoil() ? "" : "the folder could not be spoiled";
  });
  if (IsSkipped()) return;
  for (int rank = 1; rank < permissionsRanks; ++rank) {
    const std::string log = logs[rank]->text();
    EXPECT_EQ(countOf(log, GetParam().said), 1u) << log;
    EXPECT_EQ(countOf(log, "kept in private memory"), 1u) << log;
    EXPECT_EQ(countOf(log, "/dev/shm"), 1u) << log;
  }
}
INSTANTIATE_TEST_SUITE_P(
    Each, SharedMemory,
    testing::Values(BadSharedMemory{"Full", "size=8k", 0, [] { return true; }, "No space left on device"},
                    BadSharedMemory{"ReadOnly", "", MS_RDONLY, [] { return true; }, "Read-only file system"},
                    BadSharedMemory{"OfAnotherUser", "", 0,
                                    [] {
                                      return mkdir(jobsFolder().c_str(), 0700) == 0 &&
                                             chown(jobsFolder().c_str(), 65001, 65001) == 0;
                                    },
                                    "belongs to user 65001"},
                    BadSharedMemory{"ALink", "", 0, [] { return symlink("/tmp", jobsFolder().c_str()) == 0; },
                                    "is no folder but a link"}),
    [](const auto& each) { return each.param.name; });

}  // namespace
}  // namespace falcon::test
