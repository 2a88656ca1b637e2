// A rank that dies where the others take a checkpoint: they are told, and the newest one that all have is there for the
// next attempt.
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>

#include "harness/api_rank.h"

namespace falcon::test {
namespace {

constexpr int checkpointRanks = 3, dies = 2;
constexpr std::size_t values = 100'000;

std::vector<int> stateOf(int rank, int iteration) {
  return std::vector<int>(values, 10 * iteration + rank);
}

std::string folderOfThisTest() {
  return testing::TempDir() + "falcon-dying-" + std::to_string(getpid());
}

TEST(Checkpoint, OfARankThatDiesIsAnErrorOnTheOthers) {
  const std::string folder = folderOfThisTest();
  std::filesystem::remove_all(folder);
  SharedBoard board;
  ForkedRanks first(checkpointRanks, [&](int rank) -> std::string {
    ncclComm_t comm = nullptr;
    if (auto wrong = makeCommunicator(board, 0, rank, checkpointRanks, comm); !wrong.empty()) return wrong;
    std::vector<int> state = stateOf(rank, 1);
    ncclFalconRegisterState(comm, "state", state.data(), state.size() * sizeof(int), 0);
    if (const auto kept = ncclFalconCheckpoint(comm, 1, folder.c_str()); kept != ncclSuccess)
      return saying("the first checkpoint", kept);
    if (const auto kept = ncclFalconCheckpointSynchronize(comm); kept != ncclSuccess)
      return saying("ncclFalconCheckpointSynchronize", kept);
    board.reach(rank, 1);
    for (int other = 0; other < checkpointRanks; ++other)
      if (!board.waitFor(other, 1)) return "a rank has no first checkpoint";
    state = stateOf(rank, 2);
    if (rank == dies) raise(SIGKILL);
    const auto start = std::chrono::steady_clock::now();
    const auto second = ncclFalconCheckpoint(comm, 2, folder.c_str());
    if (second != ncclRemoteError) return saying("the second checkpoint", second);
    if (std::chrono::steady_clock::now() - start > Seconds(30)) return "it took long to be told";
    return ncclCommAbort(comm) == ncclSuccess ? "" : "ncclCommAbort";
  });
  EXPECT_EQ(first.wait(dies, Seconds(150)).signal, SIGKILL);
  for (const int rank : {0, 1}) EXPECT_EQ(first.wait(rank, Seconds(150)).report, "") << rank;

  SharedBoard again;
  ForkedRanks second(checkpointRanks, [&](int rank) -> std::string {
    ncclComm_t comm = nullptr;
    if (auto wrong = makeCommunicator(again, 0, rank, checkpointRanks, comm); !wrong.empty()) return wrong;
    std::vector<int> state(values);
    ncclFalconRegisterState(comm, "state", state.data(), state.size() * sizeof(int), 0);
    std::uint64_t iteration = 0;
    if (const auto restored = ncclFalconRestore(comm, folder.c_str(), &iteration); restored != ncclSuccess)
      return saying("ncclFalconRestore", restored);
    if (iteration != 1) return "restored " + std::to_string(iteration);
    if (state != stateOf(rank, 1)) return "other state than was kept";
    ncclCommDestroy(comm);
    return "";
  });
  EXPECT_TRUE(second.allRight());
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace falcon::test
