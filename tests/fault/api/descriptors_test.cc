// Processes without file descriptors: an error that names the limit and the remedy, on all ranks, and nothing is lost.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <array>
#include <filesystem>
#include <optional>

#include "harness/api_rank.h"
#include "harness/reserved_port.h"

namespace falcon::test {
namespace {

int descriptorsHere() {
  return static_cast<int>(std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {})) - 1;
}

/// While it lives this process has no more than `room` free descriptors.
class Shortage {
 public:
  /// With `forGood` the hard limit falls too, so that the soft one cannot be raised; only root can undo that.
  explicit Shortage(int room, bool forGood = false) {
    getrlimit(RLIMIT_NOFILE, &before_);
    const int next = dup(0);
    close(next);
    const auto most = static_cast<rlim_t>(next + room);
    const rlimit tight{most, forGood ? most : before_.rlim_max};
    setrlimit(RLIMIT_NOFILE, &tight);
    // What the network thread has not closed yet comes free a moment later.
    for (int calm = 0; calm < 10; ++calm) {
      for (int taken; (taken = dup(0)) >= 0; calm = 0) taken_.push_back(taken);
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    for (; room > 0 && !taken_.empty(); --room) giveBackOne();
  }
  ~Shortage() {
    while (!taken_.empty()) giveBackOne();
    setrlimit(RLIMIT_NOFILE, &before_);
  }
  Shortage(const Shortage&) = delete;

 private:
  void giveBackOne() {
    close(taken_.back());
    taken_.pop_back();
  }

  rlimit before_{};
  std::vector<int> taken_;
};

std::string namesLimitAndRemedy() {
  const std::string error = ncclGetLastError(nullptr);
  const bool both =
      error.find("Too many open files") != std::string::npos && error.find("ulimit -n") != std::string::npos;
  return both ? "" : "the error does not name limit and remedy: " + error;
}

/// Whatever is missing: an error that says so, and once there are enough it works.
TEST(Descriptors, AShortageAtInitIsAClearErrorAndPasses) {
  ForkedRanks forked(1, [](int) -> std::string {
    int enough = -1, unused = 0;
    const int atFirst = descriptorsHere();
    for (int room = 0; room < 40 && enough < 0; ++room) {
      std::optional<Shortage> shortage(room);
      ncclUniqueId id;
      ncclComm_t comm = nullptr;
      const bool named = ncclGetUniqueId(&id) == ncclSuccess;
      const auto result = named ? ncclCommInitRank(&comm, 1, id, 0) : ncclSystemError;
      const std::string clear = result == ncclSuccess ? "" : namesLimitAndRemedy();
      shortage.reset();
      if (!clear.empty()) return clear;
      if (result != ncclSuccess && result != ncclSystemError) return "not a system error";
      if (result == ncclSuccess) enough = room;
      unused += named && result != ncclSuccess;
      if (comm) ncclCommDestroy(comm);
    }
    if (enough < 1) return "no shortage seen, or never enough: " + std::to_string(enough);
    // Sockets are closed by the network thread, perhaps a moment later. The doorbell stays for the process's life; an
    // id that nobody came to has a timer, and keeps the network thread with its five.
    const int kept = 1 + (unused > 0 ? 5 + unused : 0);
    for (int i = 0; i < 6000 && descriptorsHere() > atFirst + kept; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    const int left = descriptorsHere() - atFirst - kept;
    return left <= 0 ? "" : std::to_string(left) + " descriptors leaked";
  });
  EXPECT_TRUE(forked.allRight());
}

class AtFirstConnection : public testing::TestWithParam<int> {};

/// One of four ranks has no descriptor left when the first connections are made, be it to connect or to be connected
/// to.
TEST_P(AtFirstConnection, EndsTheCommunicatorOnAllRanksAndSaysWhere) {
  constexpr int ranks = 4;
  const int poor = GetParam();
  const auto logs = logsOf(ranks);
  SharedBoard board;
  ForkedRanks forked(ranks, [&](int rank) -> std::string {
    logs[rank]->use("WARN");
    setenv("NCCL_SHM_DISABLE", "1", 1);
    ncclComm_t comm = nullptr, next = nullptr;
    if (auto wrong = makeCommunicator(board, 0, rank, ranks, comm); !wrong.empty()) return wrong;
    std::optional<Shortage> shortage;
    // Before anybody connects: over a socket that has come in already it could send as well.
    constexpr int isPoor = 8;
    if (rank == poor) {
      shortage.emplace(0);
      board.reach(isPoor, 1);
    } else if (!board.waitFor(isPoor, 1)) {
      return "the shortage did not come";
    }
    const auto done = [&] {
      std::int32_t value = rank;
      return ncclAllReduce(&value, &value, 1, ncclInt32, ncclSum, comm, hostStream);
    }();
    shortage.reset();
    if (done != ncclSystemError && done != ncclRemoteError) return saying("no error", done);
    ncclCommAbort(comm);
    // The process is none the worse for it.
    if (auto wrong = makeCommunicator(board, 1, rank, ranks, next); !wrong.empty()) return wrong;
    if (auto wrong = sumsAreRight(next, rank, ranks); !wrong.empty()) return wrong;
    ncclCommDestroy(next);
    return "";
  });
  EXPECT_TRUE(forked.allRight(Seconds(60)));
  EXPECT_THAT(logs[poor]->text(), testing::HasSubstr("ulimit -n"));
}

/// It takes no connection, but makes none either: it has nothing to connect.
TEST(Descriptors, WhoCannotBeConnectedToIsNotWaitedForForEver) {
  const auto logs = logsOf(2);
  SharedBoard board;
  ForkedRanks forked(2, [&](int rank) -> std::string {
    logs[rank]->use("WARN");
    setenv("NCCL_SHM_DISABLE", "1", 1);
    ncclComm_t comm = nullptr;
    if (auto wrong = makeCommunicator(board, 0, rank, 2, comm); !wrong.empty()) return wrong;
    std::optional<Shortage> shortage;
    if (rank == 1) shortage.emplace(0);
    board.reach(rank, 1);
    if (!board.waitFor(1, 1)) return "rank 1 does not come";
    std::int32_t value = rank;
    const auto done = rank == 0 ? ncclSend(&value, 1, ncclInt32, 1, comm, hostStream)
                                : ncclRecv(&value, 1, ncclInt32, 0, comm, hostStream);
    shortage.reset();
    // A sender may be done before the receiver's trouble is known.
    ncclResult_t state = done;
    for (int i = 0; i < 3000 && state == ncclSuccess; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      ncclCommGetAsyncError(comm, &state);
    }
    if (state != ncclSystemError && state != ncclRemoteError) return saying("no error", state);
    ncclCommAbort(comm);
    return "";
  });
  EXPECT_TRUE(forked.allRight(Seconds(60)));
  EXPECT_THAT(logs[1]->text(), testing::HasSubstr("ulimit -n"));
}

/// The rank where all others come to meet: without descriptors for them, none of them waits until the init timeout.
TEST(Descriptors, ARendezvousThatCanLetNobodyInTellsAll) {
  constexpr int ranks = 3;
  const auto logs = logsOf(ranks);
  SharedBoard board;
  ForkedRanks forked(ranks, [&](int rank) -> std::string {
    logs[rank]->use("WARN");
    ncclUniqueId id;
    if (auto wrong = agreeOnId(board, 0, rank, id); !wrong.empty()) return wrong;
    std::optional<Shortage> shortage;
    if (rank == 0) shortage.emplace(2, true);  // its own way in, and no other's
    board.reach(rank, 1);
    if (!board.waitFor(0, 1)) return "rank 0 does not come";
    ncclComm_t comm = nullptr;
    const auto made = ncclCommInitRank(&comm, ranks, id, rank);
    shortage.reset();
    return made == ncclSystemError || made == ncclRemoteError ? "" : saying("no error", made);
  });
  EXPECT_TRUE(forked.allRight(Seconds(60)));
  EXPECT_THAT(logs[0]->text(), testing::HasSubstr("ulimit -n"));
}

class AtRendezvous : public testing::TestWithParam<bool> {};

/// A rank that has not even a socket to come with says so all the same, whether or not its limit can be raised for
/// that.
TEST_P(AtRendezvous, ARankWithoutASocketTellsAll) {
  constexpr int ranks = 3, poor = 1;
  SharedBoard board;
  ForkedRanks forked(ranks, [&](int rank) -> std::string {
    setenv("NCCL_FALCON_INIT_TIMEOUT", "600", 1);
    ncclUniqueId id;
    if (auto wrong = agreeOnId(board, 0, rank, id); !wrong.empty()) return wrong;
    const int file = dup(0);  // as every program has some
    std::optional<Shortage> shortage;
    if (rank == poor) shortage.emplace(0, GetParam());
    ncclComm_t comm = nullptr;
    const auto made = ncclCommInitRank(&comm, ranks, id, rank);
    shortage.reset();
    close(file);
    if (rank == poor) return made == ncclSystemError ? namesLimitAndRemedy() : saying("no system error", made);
    const std::string said = ncclGetLastError(nullptr);
    const bool told = said.find("rank 1") != std::string::npos && said.find("Too many open files") != std::string::npos;
    return made == ncclRemoteError && told ? "" : saying("ncclCommInitRank", made);
  });
  EXPECT_TRUE(forked.allRight(Seconds(60)));
}

class AtFixedRendezvous : public testing::TestWithParam<int> {};

/// Whatever rank 0 has no descriptor for: the thread that listens, its own way in, or the others'.
TEST_P(AtFixedRendezvous, TellsAll) {
  constexpr int ranks = 3;
  const ReservedPort place;
  ASSERT_NE(place.number(), 0);
  SharedBoard board;
  ForkedRanks forked(ranks, [&](int rank) -> std::string {
    setenv("NCCL_FALCON_INIT_TIMEOUT", "600", 1);
    setenv("NCCL_COMM_ID", place.text().c_str(), 1);
    // As a program has whose limit is reached: the last word needs ten that are no sockets.
    std::array<int, 12> files;
    for (int& file : files) file = dup(0);
    std::optional<Shortage> shortage;
    if (rank == 0) shortage.emplace(GetParam(), true);
    board.reach(rank, 1);
    if (!board.waitFor(0, 1)) return "rank 0 does not come";
    ncclUniqueId id;
    ncclComm_t comm = nullptr;
    if (const auto named = ncclGetUniqueId(&id); named != ncclSuccess) return saying("ncclGetUniqueId", named);
    const auto made = ncclCommInitRank(&comm, ranks, id, rank);
    shortage.reset();
    for (const int file : files) close(file);
    const std::string said = ncclGetLastError(nullptr);
    const bool told = said.find("Too many open files") != std::string::npos;
    const auto expected = rank == 0 ? ncclSystemError : ncclRemoteError;
    return made == expected && told ? "" : saying("ncclCommInitRank", made) + ": " + said;
  });
  EXPECT_TRUE(forked.allRight(Seconds(60)));
}

INSTANTIATE_TEST_SUITE_P(Room, AtFixedRendezvous, testing::Values(0, 4, 6, 10, 11, 12));
INSTANTIATE_TEST_SUITE_P(ForGood, AtRendezvous, testing::Bool());
INSTANTIATE_TEST_SUITE_P(OfRank, AtFirstConnection, testing::Values(0, 3));

}  // namespace
}  // namespace falcon::test
