// One-sided messages between processes: they arrive, and a peer that dies ends a wait.
#include <gtest/gtest.h>
#include <signal.h>

#include "harness/api_rank.h"

namespace falcon::test {
namespace {

constexpr int oneSidedRanks = 3;

/// A window of a rank, with `ints` integers of -1.
std::string registerWindow(ncclComm_t comm, std::size_t ints, int*& values, ncclWindow_t& window) {
  void* memory = nullptr;
  if (const auto got = ncclMemAlloc(&memory, ints * sizeof(int)); got != ncclSuccess) return saying("alloc", got);
  values = static_cast<int*>(memory);
  std::fill(values, values + ints, -1);
  const auto made = ncclCommWindowRegister(comm, memory, ints * sizeof(int), &window, NCCL_WIN_COLL_SYMMETRIC);
  return made == ncclSuccess ? "" : saying("ncclCommWindowRegister", made);
}

std::string exchange(ncclComm_t comm, int rank, std::size_t count) {
  int* values = nullptr;
  ncclWindow_t window = nullptr;
  if (auto wrong = registerWindow(comm, oneSidedRanks * count, values, window); !wrong.empty()) return wrong;
  for (int round = 0; round < 50; ++round) {
    const std::vector<int> mine(count, 1000 * round + rank);
    std::vector<ncclWaitSignalDesc_t> signals;
    for (int peer = 0; peer < oneSidedRanks; ++peer) {
      const auto put = ncclPutSignal(mine.data(), count, ncclInt, peer, window, rank * count * sizeof(int), 0, 0, 0,
                                     comm, hostStream);
      if (put != ncclSuccess) return saying("ncclPutSignal", put);
      signals.push_back({1, peer, 0, 0});
    }
    const auto waited = ncclWaitSignal(oneSidedRanks, signals.data(), comm, hostStream);
    if (waited != ncclSuccess) return saying("ncclWaitSignal", waited);
    for (int peer = 0; peer < oneSidedRanks; ++peer)
      for (std::size_t i = 0; i < count; ++i)
        if (values[peer * count + i] != 1000 * round + peer)
          return "round " + std::to_string(round) + ": what rank " + std::to_string(peer) + " put is not there";
    if (auto wrong = sumIsRight(comm, rank, oneSidedRanks, 1); !wrong.empty()) return wrong;
  }
  const auto gone = ncclCommWindowDeregister(comm, window);
  if (gone != ncclSuccess) return saying("ncclCommWindowDeregister", gone);
  ncclMemFree(values);
  return "";
}

class OneSided : public testing::TestWithParam<Over> {};
INSTANTIATE_TEST_SUITE_P(By, OneSided, testing::ValuesIn(everyWay), [](const auto& its) { return nameOf(its.param); });

TEST_P(OneSided, MessagesArriveInOtherProcesses) {
  SharedBoard board;
  ForkedRanks forked(oneSidedRanks, [&](int rank) -> std::string {
    choose(GetParam());
    ncclComm_t comm = nullptr;
    if (auto wrong = makeCommunicator(board, 0, rank, oneSidedRanks, comm); !wrong.empty()) return wrong;
    for (const std::size_t count : {1, 50'000})
      if (auto wrong = exchange(comm, rank, count); !wrong.empty()) return wrong;
    ncclCommDestroy(comm);
    return "";
  });
  ASSERT_TRUE(forked.allRight());
}

constexpr int victim = 2;

/// This rank has come so far, and waits until the other one has.
void await(SharedBoard& board, int other, int self) {
  board.reach(self, 1);
  (void)board.waitFor(other, 1);
}

TEST_P(OneSided, APeerThatDiesEndsTheWaitForIt) {
  SharedBoard board;
  ForkedRanks forked(oneSidedRanks, [&](int rank) -> std::string {
    choose(GetParam());
    ncclComm_t comm = nullptr;
    if (auto wrong = makeCommunicator(board, 0, rank, oneSidedRanks, comm); !wrong.empty()) return wrong;
    if (rank == victim) {
      board.reach(victim, 1);
      while (true) pause();
    }
    // One waits for the victim, the other for one that waits itself.
    ncclWaitSignalDesc_t signal{1, rank == 0 ? victim : 0, 0, 0};
    const auto waited = ncclWaitSignal(1, &signal, comm, hostStream);
    if (waited != ncclRemoteError) return saying("ncclWaitSignal", waited);
    const std::string why = ncclGetLastError(nullptr);
    await(board, 1 - rank, rank);  // else it hears of our end before it hears of the victim's
    ncclCommAbort(comm);
    return why.find("rank 2") != std::string::npos ? "" : why;
  });
  ASSERT_TRUE(board.waitFor(victim, 1));
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  forked.signal(victim, SIGKILL);
  for (const int rank : {0, 1}) EXPECT_EQ(forked.wait(rank, Seconds(60)).report, "") << "rank " << rank;
}

// Over connections: in the middle of a message that the victim, which is stopped, does not take.
TEST_P(OneSided, APeerThatDiesEndsWhatIsSentToIt) {
  SharedBoard board;
  constexpr std::size_t count = 30'000'000;
  ForkedRanks forked(oneSidedRanks, [&](int rank) -> std::string {
    choose(GetParam());
    ncclComm_t comm = nullptr;
    if (auto wrong = makeCommunicator(board, 0, rank, oneSidedRanks, comm); !wrong.empty()) return wrong;
    int* values = nullptr;
    ncclWindow_t window = nullptr;
    if (auto wrong = registerWindow(comm, count, values, window); !wrong.empty()) return wrong;
    if (auto wrong = sumIsRight(comm, rank, oneSidedRanks, 1); !wrong.empty()) return wrong;
    board.reach(rank, 1);
    if (rank == victim)
      while (true) pause();
    const std::vector<int> mine(count, rank);
    ncclResult_t put = ncclSuccess;
    while (put == ncclSuccess)
      put = ncclPutSignal(mine.data(), count, ncclInt, victim, window, 0, 0, 0, 0, comm, hostStream);
    if (put != ncclRemoteError) return saying("ncclPutSignal", put);
    const std::string why = ncclGetLastError(nullptr);
    ncclCommAbort(comm);
    return why.find("rank 2") != std::string::npos ? "" : why;
  });
  for (const int rank : {0, 1, victim}) ASSERT_TRUE(board.waitFor(rank, 1));
  forked.signal(victim, SIGSTOP);
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  forked.signal(victim, SIGKILL);
  for (const int rank : {0, 1}) EXPECT_EQ(forked.wait(rank, Seconds(60)).report, "") << "rank " << rank;
}

// It has not even connected: only the others can say that it has left.
TEST_P(OneSided, APeerThatLeavesEndsTheWaitForIt) {
  SharedBoard board;
  ForkedRanks forked(oneSidedRanks, [&](int rank) -> std::string {
    choose(GetParam());
    ncclComm_t comm = nullptr;
    if (auto wrong = makeCommunicator(board, 0, rank, oneSidedRanks, comm); !wrong.empty()) return wrong;
    if (rank == victim) {
      const auto left = ncclCommDestroy(comm);
      return left == ncclSuccess ? "" : saying("ncclCommDestroy", left);
    }
    ncclWaitSignalDesc_t signal{1, victim, 0, 0};
    const auto waited = ncclWaitSignal(1, &signal, comm, hostStream);
    if (waited != ncclRemoteError) return saying("ncclWaitSignal", waited);
    const std::string why = ncclGetLastError(nullptr);
    await(board, 1 - rank, rank);
    ncclCommAbort(comm);
    return why.find("has left the communicator") != std::string::npos ? "" : why;
  });
  ASSERT_TRUE(forked.allRight(Seconds(60)));
}

}  // namespace
}  // namespace falcon::test
