// A process may end as soon as ncclCommDestroy has returned: the others then know that it left, and did not die.
#include <gtest/gtest.h>

#include "harness/api_rank.h"

namespace falcon::test {
namespace {

constexpr int leavingRanks = 2;
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
  ncclCommInitRankConfig(&comm, leavingRanks, id, rank, &config);
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
    ForkedRanks forked(leavingRanks, [&](int rank) { return life(board, rank, blocking, work); });
    forked.wait(1, Seconds(60));
    board.reach(1, 1);
    ASSERT_TRUE(forked.allRight()) << "round " << round;
  }
}

TEST(Goodbye, IsToldAfterCallsOnAStream) {
  expectGoodbye(true, [](ncclComm_t comm, int) -> std::string {
    ncclFalconStream_t stream = nullptr;
    if (const auto made = ncclFalconStreamCreate(&stream); made != ncclSuccess) return saying("create", made);
    float value = 1;
    ncclAllReduce(&value, &value, 1, ncclFloat, ncclSum, comm, stream);
    const auto done = ncclFalconStreamSynchronize(stream);
    return done == ncclSuccess && value == leavingRanks ? "" : saying("ncclAllReduce", done);
  });
}

TEST(Goodbye, IsToldAfterAWaitForASignalOnAStream) {
  expectGoodbye(true, [](ncclComm_t comm, int rank) -> std::string {
    ncclFalconStream_t stream = nullptr;
    if (const auto made = ncclFalconStreamCreate(&stream); made != ncclSuccess) return saying("create", made);
    ncclSignal(1 - rank, 0, 0, 0, comm, stream);
    ncclWaitSignalDesc_t signal{1, 1 - rank, 0, 0};
    ncclWaitSignal(1, &signal, comm, stream);
    const auto done = ncclFalconStreamSynchronize(stream);
    return done == ncclSuccess ? "" : saying("ncclWaitSignal", done);
  });
}

TEST(Goodbye, IsToldWhereACommunicatorWasMadeInTheBackgroundAndNotUsed) {
  expectGoodbye(false, [](ncclComm_t, int) -> std::string { return ""; });
}

TEST(Goodbye, IsToldAfterASplitThatTheRankHadNoPartIn) {
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

/// Over which way, who leaves, and whether the one that stays receives (or sends) then.
class Leaving : public testing::TestWithParam<std::tuple<Over, int, bool>> {};

// It has never connected to the one that waits: only the others can say that it has left. Where it is rank 0, whose
// process has kept watch over them, it is over before.
TEST_P(Leaving, EndsTheFirstMessageThatNeedsTheLeaver) {
  const auto [over, leaver, receives] = GetParam();
  constexpr int size = 4, waiter = 2, large = 4 << 20;
  SharedBoard board;
  ForkedRanks forked(size, [&, over = over, leaver = leaver, receives = receives](int rank) -> std::string {
    choose(over);
    ncclComm_t comm = nullptr;
    if (auto wrong = makeCommunicator(board, 0, rank, size, comm); !wrong.empty()) return wrong;
    if (rank == leaver) {
      const auto done = ncclCommDestroy(comm);
      return done == ncclSuccess ? "" : saying("ncclCommDestroy", done);
    }
    if (rank != waiter) {
      if (!board.waitFor(1, 1)) return "the message does not end";
      ncclCommAbort(comm);
      return "";
    }
    if (!board.waitFor(2, 1)) return "the leaver does not end";
    std::vector<char> bytes(large);
    const auto done = receives ? ncclRecv(bytes.data(), bytes.size(), ncclChar, leaver, comm, hostStream)
                               : ncclSend(bytes.data(), bytes.size(), ncclChar, leaver, comm, hostStream);
    const std::string why = ncclGetLastError(nullptr);
    board.reach(1, 1);
    ncclCommAbort(comm);
    if (done != ncclRemoteError) return saying("the message", done);
    return why.find("has left the communicator") != std::string::npos ? "" : why;
  });
  EXPECT_EQ(forked.wait(leaver, Seconds(60)).report, "");
  board.reach(2, 1);
  ASSERT_TRUE(forked.allRight(Seconds(60)));
}
INSTANTIATE_TEST_SUITE_P(Of, Leaving,
                         testing::Combine(testing::ValuesIn(everyWay), testing::Values(0, 1), testing::Bool()),
                         [](const auto& its) {
                           return nameOf(std::get<0>(its.param)) + std::to_string(std::get<1>(its.param)) +
                                  (std::get<2>(its.param) ? "Receive" : "Send");
                         });

}  // namespace
}  // namespace falcon::test
