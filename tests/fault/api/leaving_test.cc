// A process may end as soon as ncclCommDestroy has returned: the others then know that it left, and did not die.
#include <gtest/gtest.h>

#include "harness/api_rank.h"

namespace falcon::test {
namespace {

constexpr int ranks = 2;
// What once went wrong did so in one round of three.
constexpr int rounds = 20;

using Work = std::function<std::string(ncclComm_t comm, int rank)>;

std::string waitFor(ncclComm_t comm) {
  ncclResult_t state = ncclInProgress;
  while (state == ncclInProgress) ncclCommGetAsyncError(comm, &state);
  return state == ncclSuccess ? "" : saying("ncclCommGetAsyncError", state);
}

/// Rank 1 works, destroys and ends at once; rank 0, which has worked too, asks for it then.
std::string life(const SharedBoard& board, int rank, bool blocking, const Work& work) {
  ncclUniqueId id;
  if (auto wrong = agreeOnId(board, 0, rank, id); !wrong.empty()) return wrong;
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = blocking ? 1 : 0;
  ncclComm_t comm = nullptr;
  ncclCommInitRankConfig(&comm, ranks, id, rank, &config);
  if (auto wrong = waitFor(comm); !wrong.empty()) return wrong;
  if (auto wrong = work(comm, rank); !wrong.empty()) return wrong;
  if (rank == 1) {
    const auto done = ncclCommDestroy(comm);
    return done == ncclSuccess ? "" : saying("ncclCommDestroy", done);
  }
  if (!board.waitFor(1, 1)) return "rank 1 does not end";
  ncclComm_t child = nullptr;
  ncclConfig_t waits = NCCL_CONFIG_INITIALIZER;
  waits.blocking = 1;
  ncclCommSplit(comm, 0, 0, &child, &waits);
  const std::string why = ncclGetLastError(nullptr);
  ncclCommDestroy(comm);
  return why.find("has left the communicator") != std::string::npos ? "" : why;
}

void expectGoodbye(bool blocking, const Work& work) {
  for (int round = 0; round < rounds; ++round) {
    SharedBoard board;
    ForkedRanks forked(ranks, [&](int rank) { return life(board, rank, blocking, work); });
    forked.wait(1, Seconds(60));
    board.reach(1, 1);
    ASSERT_TRUE(forked.allRight()) << "round " << round;
  }
}

TEST(Leaving, IsToldAfterCallsOnAStream) {
  expectGoodbye(true, [](ncclComm_t comm, int) -> std::string {
    ncclFalconStream_t stream = nullptr;
    if (const auto made = ncclFalconStreamCreate(&stream); made != ncclSuccess) return saying("create", made);
    float value = 1;
    ncclAllReduce(&value, &value, 1, ncclFloat, ncclSum, comm, stream);
    const auto done = ncclFalconStreamSynchronize(stream);
    return done == ncclSuccess && value == ranks ? "" : saying("ncclAllReduce", done);
  });
}

TEST(Leaving, IsToldAfterASplitThatTheRankHadNoPartIn) {
  expectGoodbye(false, [](ncclComm_t comm, int rank) -> std::string {
    ncclComm_t child = nullptr;
    ncclCommSplit(comm, rank == 0 ? 0 : NCCL_SPLIT_NOCOLOR, 0, &child, nullptr);
    if (child) {
      if (auto wrong = waitFor(child); !wrong.empty()) return wrong;
      ncclCommDestroy(child);
      return "";
    }
    ncclCommFinalize(comm);
    return waitFor(comm);
  });
}

}  // namespace
}  // namespace falcon::test
