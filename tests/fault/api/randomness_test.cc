// A kernel that gives no random bytes: nothing is made whose secret anybody could guess.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

#include "harness/api_rank.h"
#include "harness/forbid_call.h"

namespace falcon::test {
namespace {

constexpr const char* reason = "the kernel gives no random bytes: Function not implemented";
constexpr const char* noFilter = "no seccomp filter";

/// Runs `body(rank)` in each of `ranks` processes.
void expectInRanks(int ranks, const std::function<std::string(SharedBoard& board, int rank)>& body) {
  SharedBoard board;
  ForkedRanks forked(ranks, [&](int rank) { return body(board, rank); });
  for (int rank = 0; rank < ranks; ++rank) {
    const auto& outcome = forked.wait(rank, Seconds(60));
    if (outcome.report == noFilter) GTEST_SKIP() << outcome.report;
    EXPECT_TRUE(outcome.ended) << "rank " << rank << " hangs";
    EXPECT_EQ(outcome.report, "") << "rank " << rank;
  }
}

std::string isRefused(const char* what, ncclResult_t result) {
  const std::string said = ncclGetLastError(nullptr);
  if (result == ncclSystemError && said.find(reason) != std::string::npos) return "";
  return saying(what, result);
}

TEST(WithoutRandomness, NoUniqueIdIsMade) {
  expectInRanks(1, [](SharedBoard&, int) -> std::string {
    if (!forbidRandomBytes(ENOSYS)) return noFilter;
    ncclUniqueId id;
    return isRefused("ncclGetUniqueId", ncclGetUniqueId(&id));
  });
}

TEST(WithoutRandomness, NoCommunicatorOfOneRankIsMade) {
  expectInRanks(1, [](SharedBoard&, int) -> std::string {
    ncclUniqueId id;
    if (const auto made = ncclGetUniqueId(&id); made != ncclSuccess) return saying("ncclGetUniqueId", made);
    if (!forbidRandomBytes(ENOSYS)) return noFilter;
    ncclComm_t comm = nullptr;
    return isRefused("ncclCommInitRank", ncclCommInitRank(&comm, 1, id, 0));
  });
}

/// Without them it cannot prove to the others who it is, so they do not hear of it: they wait for as long as for any
/// rank that does not come.
TEST(WithoutRandomness, ARankFailsTheCommunicator) {
  expectInRanks(2, [](SharedBoard& board, int rank) -> std::string {
    ncclUniqueId id;
    if (auto wrong = agreeOnId(board, 0, rank, id); !wrong.empty()) return wrong;
    setenv("NCCL_FALCON_INIT_TIMEOUT", "3", 1);
    if (rank == 1 && !forbidRandomBytes(ENOSYS)) return noFilter;
    ncclComm_t comm = nullptr;
    const auto made = ncclCommInitRank(&comm, 2, id, rank);
    if (rank == 1) return isRefused("ncclCommInitRank", made);
    return made == ncclRemoteError ? "" : saying("ncclCommInitRank", made);
  });
}

}  // namespace
}  // namespace falcon::test
