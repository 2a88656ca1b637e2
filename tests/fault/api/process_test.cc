// What programs do around the library: signals, closed standard streams, children, threads that come and go, exit().
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/time.h>
#include <sys/wait.h>

#include <atomic>
#include <filesystem>

#include "harness/api_rank.h"

namespace falcon::test {
namespace {

constexpr int processRanks = 3;

/// Makes, uses, splits and destroys a communicator.
std::string wholeLife(const SharedBoard& board, int number, int rank) {
  ncclComm_t comm = nullptr, part = nullptr;
  if (auto wrong = makeCommunicator(board, number, rank, processRanks, comm); !wrong.empty()) return wrong;
  if (auto wrong = sumsAreRight(comm, rank, processRanks); !wrong.empty()) return wrong;
  if (const auto split = ncclCommSplit(comm, rank == 0 ? 1 : 0, rank, &part, nullptr); split != ncclSuccess)
    return saying("ncclCommSplit", split);
  int size = 0, self = 0;
  ncclCommCount(part, &size);
  ncclCommUserRank(part, &self);
  if (auto wrong = sumsAreRight(part, self, size); !wrong.empty()) return wrong;
  if (const auto done = ncclCommDestroy(part); done != ncclSuccess) return saying("ncclCommDestroy", done);
  const auto done = ncclCommDestroy(comm);
  return done == ncclSuccess ? "" : saying("ncclCommDestroy", done);
}

/// Every rank runs `before`, then a communicator's life over every transport.
void expectLives(const std::function<std::string(int rank)>& before) {
  SharedBoard board;
  ForkedRanks forked(processRanks, [&](int rank) -> std::string {
    if (auto wrong = before(rank); !wrong.empty()) return wrong;
    int number = 0;
    for (const Over over : everyWay) {
      choose(over);
      if (auto wrong = wholeLife(board, number++, rank); !wrong.empty()) return wrong;
    }
    return "";
  });
  EXPECT_TRUE(forked.allRight());
}

std::atomic<int> alarms{0};
static_assert(std::atomic<int>::is_always_lock_free);

/// As a profiler does: interrupted system calls are not restarted.
TEST(Signals, InterruptNothing) {
  expectLives([](int) -> std::string {
    struct sigaction action {};
    action.sa_handler = [](int) { alarms.fetch_add(1); };
    if (sigaction(SIGALRM, &action, nullptr) != 0) return "sigaction";
    const itimerval thousandASecond{{0, 1000}, {0, 1000}};
    if (setitimer(ITIMER_REAL, &thousandASecond, nullptr) != 0) return "setitimer";
    while (alarms == 0) std::this_thread::yield();
    return "";
  });
}

/// The numbers 0 to 2 are free then: nothing that the library opens may get them, or what the program prints would go
/// into its connections.
TEST(Streams, MayBeClosed) {
  SharedBoard board;
  ForkedRanks forked(processRanks, [&](int rank) -> std::string {
    for (const int standard : {0, 1, 2}) close(standard);
    setenv("NCCL_DEBUG", "INFO", 1);
    int number = 0;
    for (const Over over : everyWay) {
      choose(over);
      ncclComm_t comm = nullptr;
      if (auto wrong = makeCommunicator(board, number++, rank, processRanks, comm); !wrong.empty()) return wrong;
      for (int i = 0; i < 3; ++i) {
        if (auto wrong = sumsAreRight(comm, rank, processRanks); !wrong.empty()) return wrong;
        for (const int standard : {0, 1, 2}) {
          if (fcntl(standard, F_GETFD) != -1) return "a descriptor of the library's is " + std::to_string(standard);
          if (write(standard, "a line of the program's\n", 24) >= 0) return "written";
        }
      }
      if (const auto done = ncclCommDestroy(comm); done != ncclSuccess) return saying("ncclCommDestroy", done);
    }
    return "";
  });
  EXPECT_TRUE(forked.allRight());
}

TEST(Streams, MayBePipesThatNobodyReads) {
  expectLives([](int) -> std::string {
    int ends[2];
    if (pipe(ends) != 0) return "pipe";
    close(ends[0]);
    dup2(ends[1], 2);
    signal(SIGPIPE, SIG_DFL);
    setenv("NCCL_DEBUG", "INFO", 1);
    return "";
  });
}

enum class Child { executes, forks, exits };
class Children : public testing::TestWithParam<Child> {};

pid_t start(Child kind) {
  pid_t child = -1;
  if (kind == Child::executes) {  // as Python's subprocess: vfork, then exec
    char name[] = "sleep", time[] = "300";
    char* arguments[] = {name, time, nullptr};
    char* nothing[] = {nullptr};
    return posix_spawnp(&child, "sleep", nullptr, nullptr, arguments, nothing) == 0 ? child : -1;
  }
  child = fork();
  if (child != 0) return child;
  if (kind == Child::exits) exit(0);  // with all that runs at exit
  prctl(PR_SET_PDEATHSIG, 0);
  sleep(300);
  _exit(0);
}

/// A data loader that outlives its rank keeps neither the rank's connections open nor the others waiting.
TEST_P(Children, OfARankDisturbNobodyAndDoNotHideItsDeath) {
  for (const Over over : everyWay) {
    SharedBoard board;
    enum Slot { running = 0, childsId = 8 };
    ForkedRanks forked(processRanks, [&](int rank) -> std::string {
      choose(over);
      ncclComm_t comm = nullptr;
      if (auto wrong = makeCommunicator(board, 0, rank, processRanks, comm); !wrong.empty()) return wrong;
      if (auto wrong = sumsAreRight(comm, rank, processRanks); !wrong.empty()) return wrong;
      if (rank == 1) {
        const pid_t child = start(GetParam());
        if (child < 0) return "no child";
        if (GetParam() == Child::exits) waitpid(child, nullptr, 0);
        board->steps[childsId].store(child);
      }
      for (int step = 1;; ++step) {
        std::int32_t value = 1;
        const auto done = ncclAllReduce(&value, &value, 1, ncclInt32, ncclSum, comm, hostStream);
        board.reach(running + rank, step);
        if (done == ncclRemoteError) break;
        if (done != ncclSuccess || value != processRanks) return saying("ncclAllReduce", done);
      }
      ncclCommAbort(comm);
      return "";
    });
    for (int rank = 0; rank < processRanks; ++rank) ASSERT_TRUE(board.waitFor(running + rank, 5));
    forked.signal(1, SIGKILL);
    for (const int rank : {0, 2}) {
      const auto& outcome = forked.wait(rank, Seconds(40));  // the child lives longer
      EXPECT_TRUE(outcome.ended) << "rank " << rank << " did not hear of the death";
      EXPECT_EQ(outcome.report, "");
    }
    // Not ours to reap; gone all the same.
    const pid_t child = board->steps[childsId].load();
    if (child > 0 && GetParam() != Child::exits) kill(child, SIGKILL);
    if (HasFailure()) return;
  }
}
std::string nameOfChild(const testing::TestParamInfo<Child>& kind) {
  constexpr const char* names[] = {"Execute", "OnlyFork", "Exit"};
  return names[static_cast<int>(kind.param)];
}
INSTANTIATE_TEST_SUITE_P(That, Children, testing::Values(Child::executes, Child::forks, Child::exits), nameOfChild);

TEST(Threads, MayEndBetweenCalls) {
  SharedBoard board;
  ForkedRanks forked(processRanks, [&](int rank) -> std::string {
    int number = 0;
    for (const Over over : everyWay) {
      choose(over);
      ncclComm_t comm = nullptr;
      std::string wrong;
      const auto inAThread = [&](const std::function<std::string()>& work) {
        if (wrong.empty()) std::thread([&] { wrong = work(); }).join();
      };
      inAThread([&] { return makeCommunicator(board, number, rank, processRanks, comm); });
      for (int i = 0; i < 5; ++i) inAThread([&] { return sumsAreRight(comm, rank, processRanks); });
      inAThread([&] { return ncclCommDestroy(comm) == ncclSuccess ? "" : "destroy"; });
      if (!wrong.empty()) return wrong;
      ++number;
    }
    return "";
  });
  EXPECT_TRUE(forked.allRight());
}

/// With communicators, threads and connections as they are, also with Falcon on.
TEST(Exit, NeedsNoDestroy) {
  for (const char* falcon : {"0", "1"})
    for (const Over over : everyWay) {
      SharedBoard board;
      ForkedRanks forked(processRanks, [&](int rank) -> std::string {
        choose(over);
        setenv("NCCL_FALCON", falcon, 1);
        setenv("NCCL_FALCON_JOB", ("falcon-fault-exit-" + std::to_string(getppid())).c_str(), 1);
        ncclComm_t comm = nullptr;
        if (auto wrong = makeCommunicator(board, 0, rank, processRanks, comm); !wrong.empty()) return wrong;
        if (auto wrong = sumsAreRight(comm, rank, processRanks); !wrong.empty()) return wrong;
        board.reach(rank, 1);
        for (int other = 0; other < processRanks; ++other)
          if (!board.waitFor(other, 1)) return "another rank does not come";
        // A thread is inside a collective that never comes about.
        static std::int32_t value = 1;
        if (rank != 0) {
          std::thread([comm] { ncclAllReduce(&value, &value, 1, ncclInt32, ncclSum, comm, hostStream); }).detach();
          std::this_thread::sleep_for(std::chrono::milliseconds(20));
        }
        exit(0);
      });
      EXPECT_TRUE(forked.allRight(Seconds(60)));
      std::filesystem::remove_all("/dev/shm/nccl-falcon-" + std::to_string(getuid()) + "/falcon-fault-exit-" +
                                  std::to_string(getpid()));
      if (HasFailure()) return;
    }
}

}  // namespace
}  // namespace falcon::test
