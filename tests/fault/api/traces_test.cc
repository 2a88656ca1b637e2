// What is left of communicators that ended, in order or not: nothing.
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <filesystem>
#include <optional>
#include <random>

#include "harness/api_rank.h"

namespace falcon::test {
namespace {

int entriesOf(const char* folder) {
  return static_cast<int>(std::distance(std::filesystem::directory_iterator(folder), {}));
}

/// What a process holds that could leak.
struct Holdings {
  int descriptors = entriesOf("/proc/self/fd");
  int threads = entriesOf("/proc/self/task");
  int sharedMappings = countMappings("rw-s");
  int mappings = countMappings(" ");

  static int countMappings(const char* kind) {
    std::ifstream maps("/proc/self/maps");
    int count = 0;
    for (std::string line; std::getline(maps, line);) count += line.find(kind) != std::string::npos;
    return count;
  }
  /// The heap's own mappings come and go by a few.
  bool within(const Holdings& before) const {
    return descriptors <= before.descriptors && threads <= before.threads && sharedMappings <= before.sharedMappings &&
           mappings <= before.mappings + 8;
  }
  std::string text() const {
    return std::to_string(descriptors) + " descriptors, " + std::to_string(threads) + " threads, " +
           std::to_string(sharedMappings) + " shared and " + std::to_string(mappings) + " mappings in all";
  }
};

/// "" once no more is held than `before`; closing is the network thread's business and may take a moment.
std::string compare(const Holdings& before) {
  for (int i = 0; i < 6000 && !Holdings().within(before); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  const Holdings now;
  return now.within(before) ? "" : "holds " + now.text() + "; before: " + before.text();
}

/// How many rounds; FALCON_TEST_THOROUGH takes the hundred that were asked for under sanitizers too.
int traceRounds() {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  return std::getenv("FALCON_TEST_THOROUGH") ? 100 : 20;
#else
  return 100;
#endif
}

/// Ids on the board are used again: only when all have read the last one of that number.
bool together(const SharedBoard& board, int rank, int size, int round) {
  board.reach(rank, round);
  for (int other = 0; other < size; ++other)
    if (!board.waitFor(other, round, Seconds(60))) return false;
  return true;
}

enum class Ending { destroy, abort, abortInside };
class Rounds : public testing::TestWithParam<std::tuple<Ending, Over>> {};

TEST_P(Rounds, LeakNothing) {
  constexpr int ranks = 3;
  const auto [ending, over] = GetParam();
  SharedBoard board;
  ForkedRanks forked(ranks, [&, ending = ending, over = over](int rank) -> std::string {
    choose(over);
    std::optional<Holdings> early;
    for (int round = 0; round < traceRounds(); ++round) {
      ncclComm_t comm = nullptr;
      if (rank == 0) board->published[0].store(0);
      if (!together(board, rank, ranks, 3 * round + 1)) return "another rank does not come";
      if (auto wrong = makeCommunicator(board, 0, rank, ranks, comm); !wrong.empty()) return wrong;
      if (auto wrong = sumIsRight(comm, rank, ranks, round % 2 == 0 ? 100 : 200'000); !wrong.empty()) return wrong;
      // An abort would reach those who have not finished yet.
      if (!together(board, rank, ranks, 3 * round + 2)) return "another rank does not come";
      // Another one aborts each time, while the others are inside a collective.
      const bool aborts = ending == Ending::abortInside && rank == round % ranks;
      if (ending == Ending::abortInside && !aborts) {
        std::vector<std::int32_t> data(200'000);
        const auto done = ncclAllReduce(data.data(), data.data(), data.size(), ncclInt32, ncclSum, comm, hostStream);
        if (done != ncclRemoteError) return saying("ncclAllReduce without one rank", done);
      }
      const auto ended = ending == Ending::destroy ? ncclCommDestroy(comm) : ncclCommAbort(comm);
      if (ended != ncclSuccess) return saying("the end", ended);
      if (!together(board, rank, ranks, 3 * round + 3)) return "another rank does not come";
      if (round == 4) {
        // Settled: what goes away in a moment is not taken for what stays.
        std::this_thread::sleep_for(std::chrono::milliseconds(300));
        early.emplace();
      }
    }
    return compare(*early);
  });
  EXPECT_TRUE(forked.allRight());
}
std::string nameOfRounds(const testing::TestParamInfo<std::tuple<Ending, Over>>& kind) {
  constexpr const char* names[] = {"Destroy", "Abort", "AbortInside"};
  return names[static_cast<int>(std::get<0>(kind.param))] + nameOf(std::get<1>(kind.param));
}
INSTANTIATE_TEST_SUITE_P(Of, Rounds,
                         testing::Combine(testing::Values(Ending::destroy, Ending::abort, Ending::abortInside),
                                          testing::Values(Over::direct, Over::sockets)),
                         nameOfRounds);

/// A rank that dies in every round, at another place each time; the other two go on for ever.
TEST(Rounds, WithADeathInEachLeakNothing) {
  constexpr int survivors = 2, deaths = 12;
  SharedBoard board;
  ForkedRanks forked(survivors + deaths, [&](int process) -> std::string {
    if (process >= survivors) {
      const int round = process - survivors;
      if (!board.waitFor(0, 2 * round + 1, Seconds(100)) || !board.waitFor(1, 2 * round + 1, Seconds(100))) return "";
      ncclComm_t comm = nullptr;
      if (auto wrong = makeCommunicator(board, 0, survivors, survivors + 1, comm); !wrong.empty()) return wrong;
      if (round % 3 > 0) {
        std::vector<std::int32_t> data(round % 3 == 1 ? 10 : 200'000);
        ncclAllReduce(data.data(), data.data(), data.size(), ncclInt32, ncclSum, comm, hostStream);
      }
      raise(SIGKILL);
    }
    const int rank = process;
    std::optional<Holdings> early;
    for (int round = 0; round < deaths; ++round) {
      if (rank == 0) board->published[0].store(0);
      if (!together(board, rank, survivors, 2 * round + 1)) return "the other rank does not come";
      choose(everyWay[round % 2]);
      ncclComm_t comm = nullptr;
      if (auto wrong = makeCommunicator(board, 0, rank, survivors + 1, comm); !wrong.empty()) return wrong;
      ncclResult_t done = ncclSuccess;
      for (int i = 0; i < 1'000'000 && done == ncclSuccess; ++i) {
        std::vector<std::int32_t> data(round % 3 == 1 ? 10 : 200'000);
        done = ncclAllReduce(data.data(), data.data(), data.size(), ncclInt32, ncclSum, comm, hostStream);
      }
      if (done != ncclRemoteError) return saying("ncclAllReduce with a dead rank", done);
      if (const auto ended = ncclCommAbort(comm); ended != ncclSuccess) return saying("ncclCommAbort", ended);
      if (!together(board, rank, survivors, 2 * round + 2)) return "the other rank does not come";
      if (round == 3) {
        std::this_thread::sleep_for(std::chrono::milliseconds(300));
        early.emplace();
      }
    }
    return compare(*early);
  });
  for (int rank = 0; rank < survivors; ++rank) {
    const auto& outcome = forked.wait(rank, Seconds(120));
    EXPECT_TRUE(outcome.ended) << "rank " << rank << " hangs";
    EXPECT_EQ(outcome.report, "") << "rank " << rank;
  }
}

/// All ranks are killed at a moment that chance picks. In a /dev/shm of the test's own, so that what others put there
/// meanwhile is not taken for ours.
std::string crashAndLook(const char* falcon, unsigned seed) {
  constexpr int ranks = 3;
  if (unshare(CLONE_NEWNS) != 0) return "not permitted";
  mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr);
  if (mount("tmpfs", "/dev/shm", "tmpfs", 0, "size=256m") != 0) return "not permitted";
  std::mt19937 chance(seed);
  {
    SharedBoard board;
    ForkedRanks forked(ranks, [&](int rank) -> std::string {
      setenv("NCCL_FALCON", falcon, 1);
      for (int number = 0; number < 16; ++number) {
        choose(everyWay[number % 3]);
        ncclComm_t comm = nullptr;
        if (auto wrong = makeCommunicator(board, number, rank, ranks, comm); !wrong.empty()) return wrong;
        if (auto wrong = sumsAreRight(comm, rank, ranks); !wrong.empty()) return wrong;
      }
      sleep(60);
      return "";
    });
    board.waitFor(63, 1, Seconds(std::uniform_real_distribution(0.0, 0.4)(chance)));
    for (int rank = 0; rank < ranks; ++rank) forked.signal(rank, SIGKILL);
    for (int rank = 0; rank < ranks; ++rank) forked.wait(rank, Seconds(30));
  }
  std::string left;
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm"))
    // The call logs of a job with Falcon on are kept for `falcon status`.
    if (*falcon == '0' || !entry.path().filename().string().starts_with("nccl-falcon-"))
      left += entry.path().string() + " ";
  return left.empty() ? "" : "left behind: " + left;
}

TEST(Crash, LeavesNoDataBehind) {
  const unsigned seed = std::random_device()();
  for (unsigned turn = 0; turn < 6; ++turn) {
    const char* falcon = turn % 2 == 0 ? "0" : "1";
    ForkedRanks holder(1, [&](int) { return crashAndLook(falcon, seed + turn); });
    const auto& outcome = holder.wait(0, Seconds(60));
    if (outcome.report == "not permitted") GTEST_SKIP() << "mount namespaces are not permitted here";
    EXPECT_TRUE(outcome.ended);
    EXPECT_EQ(outcome.report, "") << "seed " << seed + turn;
  }
}

}  // namespace
}  // namespace falcon::test
