// A unique id that is used for more than one communicator: whoever cannot be served is told, and waits for nobody.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "harness/api_rank.h"
#include "harness/listening_port.h"

namespace falcon::test {
namespace {

constexpr int idRanks = 2;

/// Each rank makes a communicator, destroys it and makes another by the same id. "" where the second is refused.
std::string makesTwoByOneId(const SharedBoard& board, int rank) {
  ncclUniqueId id;
  if (auto wrong = agreeOnId(board, 0, rank, id); !wrong.empty()) return wrong;
  ncclComm_t comm = nullptr;
  if (const auto made = ncclCommInitRank(&comm, idRanks, id, rank); made != ncclSuccess)
    return saying("the first ncclCommInitRank", made);
  if (auto wrong = sumIsRight(comm, rank, idRanks, 10); !wrong.empty()) return wrong;
  const auto start = std::chrono::steady_clock::now();
  ncclComm_t again = nullptr;
  const auto made = ncclCommInitRank(&again, idRanks, id, rank);
  const std::string why = ncclGetLastError(nullptr);
  if (made == ncclSuccess) return "a second communicator was made by one id";
  if (why.find("new unique id") == std::string::npos) return why;
  if (std::chrono::steady_clock::now() - start > std::chrono::seconds(20)) return "it was told late";
  // The first one goes on.
  if (auto wrong = sumIsRight(comm, rank, idRanks, 10); !wrong.empty()) return wrong;
  const auto done = ncclCommDestroy(comm);
  return done == ncclSuccess ? "" : saying("ncclCommDestroy", done);
}

TEST(UniqueIdUsedTwice, IsToldToAllRanks) {
  SharedBoard board;
  ForkedRanks forked(idRanks, [&](int rank) { return makesTwoByOneId(board, rank); });
  EXPECT_TRUE(forked.allRight());
}

/// One rank may make as many as it likes by one id, and end them in any order.
TEST(UniqueIdUsedTwice, OfASingleRankServesBoth) {
  ForkedRanks forked(1, [&](int) -> std::string {
    setenv("NCCL_FALCON", "1", 1);
    ncclUniqueId id;
    if (const auto named = ncclGetUniqueId(&id); named != ncclSuccess) return saying("ncclGetUniqueId", named);
    ncclComm_t comms[3] = {};
    for (ncclComm_t& comm : comms)
      if (const auto made = ncclCommInitRank(&comm, 1, id, 0); made != ncclSuccess)
        return saying("ncclCommInitRank", made);
    for (const int next : {1, 0, 2}) {
      if (auto wrong = sumIsRight(comms[next], 0, 1, 10); !wrong.empty()) return wrong;
      if (const auto done = ncclCommDestroy(comms[next]); done != ncclSuccess) return saying("ncclCommDestroy", done);
    }
    return "";
  });
  EXPECT_TRUE(forked.allRight());
}

/// All three processes say what they are; two of them say the same.
std::string claims(const SharedBoard& board, int process, int rank) {
  ncclUniqueId id;
  if (auto wrong = agreeOnId(board, 0, process, id); !wrong.empty()) return wrong;
  if (process == 2 && !board.waitFor(1, 2)) return "the others were not refused";
  const auto start = std::chrono::steady_clock::now();
  ncclComm_t comm = nullptr;
  const auto made = ncclCommInitRank(&comm, idRanks, id, rank);
  const std::string why = ncclGetLastError(nullptr);
  if (std::chrono::steady_clock::now() - start > std::chrono::seconds(20)) return "it was told late";
  board->steps[1].fetch_add(1);
  // Whose rendezvous it is lives until the others have heard.
  if (process == 0 && !board.waitFor(1, 3)) return "rank 1 was not told";
  return made != ncclSuccess && why.find("rank 0 was claimed twice") != std::string::npos ? "" : why;
}

/// The port that NCCL_COMM_ID names is another program's: both ranks say so long before they give up.
TEST(FixedRendezvous, OfAnotherProgramIsNamedSoon) {
  const ListeningPort others;
  const auto logs = logsOf(idRanks);
  ForkedRanks forked(idRanks, [&](int rank) -> std::string {
    logs[rank]->use("WARN");
    setenv("NCCL_FALCON_INIT_TIMEOUT", "7", 1);
    setenv("NCCL_COMM_ID", others.text().c_str(), 1);
    ncclUniqueId id;
    if (const auto named = ncclGetUniqueId(&id); named != ncclSuccess) return saying("ncclGetUniqueId", named);
    ncclComm_t comm = nullptr;
    const auto made = ncclCommInitRank(&comm, idRanks, id, rank);
    return made == (rank == 0 ? ncclSystemError : ncclRemoteError) ? "" : saying("ncclCommInitRank", made);
  });
  EXPECT_TRUE(forked.allRight());
  const auto says = [&](const char* what) {
    return testing::AllOf(testing::HasSubstr(others.text()), testing::HasSubstr("NCCL_COMM_ID"),
                          testing::HasSubstr("s more"), testing::HasSubstr(what));
  };
  EXPECT_THAT(logs[0]->text(), says("already in use"));
  EXPECT_THAT(logs[1]->text(), says("does not answer"));
}

TEST(RankClaimedTwice, IsToldToWhoComesAfterTheOthersToo) {
  SharedBoard board;
  ForkedRanks forked(3, [&](int process) { return claims(board, process, process == 2 ? 1 : 0); });
  EXPECT_TRUE(forked.allRight());
}

}  // namespace
}  // namespace falcon::test
