// A kernel that gives no random bytes: nothing is made whose secret anybody could guess.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

#include "harness/api_rank.h"
#include "harness/forbid_call.h"
#include "harness/reserved_port.h"

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

/// Who waits for a rank that cannot come is told why, long before the limit; ranks that wait for a minute hang here.
std::string isToldOf(const char* what, int rank, ncclResult_t result) {
  const std::string said = ncclGetLastError(nullptr);
  const bool named = said.find("rank " + std::to_string(rank)) != std::string::npos;
  if (result == ncclRemoteError && named && said.find(reason) != std::string::npos) return "";
  return saying(what, result);
}

TEST(WithoutRandomness, ARankFailsTheCommunicator) {
  expectInRanks(3, [](SharedBoard& board, int rank) -> std::string {
    setenv("NCCL_FALCON_INIT_TIMEOUT", "600", 1);
    ncclUniqueId id;
    if (auto wrong = agreeOnId(board, 0, rank, id); !wrong.empty()) return wrong;
    if (rank == 1 && !forbidRandomBytes(ENOSYS)) return noFilter;
    ncclComm_t comm = nullptr;
    const auto made = ncclCommInitRank(&comm, 3, id, rank);
    std::string wrong = rank == 1 ? isRefused("ncclCommInitRank", made) : isToldOf("ncclCommInitRank", 1, made);
    // Rank 0 lives on, so that who comes late hears it too.
    board.reach(rank, 1);
    for (const int other : {0, 1, 2})
      if (!board.waitFor(other, 1)) return "rank " + std::to_string(other) + " is not told";
    return wrong;
  });
}

class OfASplit : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(WithoutRandomness, OfASplit, testing::Values(0, 2));

/// Both where it is the one to whom the others come, and where it comes to another. It lives on: they would be told of
/// its death in any case.
TEST_P(OfASplit, ARankFailsThePart) {
  expectInRanks(3, [poor = GetParam()](SharedBoard& board, int rank) -> std::string {
    setenv("NCCL_FALCON_INIT_TIMEOUT", "600", 1);
    ncclComm_t comm = nullptr, part = nullptr;
    if (auto wrong = makeCommunicator(board, 0, rank, 3, comm); !wrong.empty()) return wrong;
    if (rank == poor && !forbidRandomBytes(ENOSYS)) return noFilter;
    const auto made = ncclCommSplit(comm, 0, 0, &part, nullptr);
    std::string wrong = rank == poor ? isRefused("ncclCommSplit", made) : isToldOf("ncclCommSplit", poor, made);
    board.reach(rank, 1);
    for (const int other : {0, 1, 2})
      if (!board.waitFor(other, 1)) return "rank " + std::to_string(other) + " is not told";
    return wrong;
  });
}

/// The rank that all others come to, from its first moment on.
TEST(WithoutRandomness, ARendezvousAtAFixedAddressTellsWhoComes) {
  const ReservedPort place;
  ASSERT_NE(place.number(), 0);
  expectInRanks(2, [&](SharedBoard&, int rank) -> std::string {
    setenv("NCCL_FALCON_INIT_TIMEOUT", "600", 1);
    setenv("NCCL_COMM_ID", place.text().c_str(), 1);
    if (rank == 0 && !forbidRandomBytes(ENOSYS)) return noFilter;
    ncclUniqueId id;
    if (const auto named = ncclGetUniqueId(&id); named != ncclSuccess) return saying("ncclGetUniqueId", named);
    ncclComm_t comm = nullptr;
    const auto made = ncclCommInitRank(&comm, 2, id, rank);
    if (rank == 0) return isRefused("ncclCommInitRank", made);
    const std::string said = ncclGetLastError(nullptr);
    const bool told = made == ncclRemoteError && said.find("its kernel gives it no random bytes") != std::string::npos;
    return told ? "" : saying("ncclCommInitRank", made);
  });
}

}  // namespace
}  // namespace falcon::test
