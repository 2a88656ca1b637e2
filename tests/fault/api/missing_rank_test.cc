// A rank that does not come to the others: who waits for it can see in the log for whom.
#include <gtest/gtest.h>

#include "harness/api_rank.h"

namespace falcon::test {
namespace {

TEST(MissingRank, IsNamedWhereTheOthersWait) {
  constexpr int ranks = 3, missing = 1, named = 8;
  const auto logs = logsOf(ranks);
  SharedBoard board;
  ForkedRanks forked(ranks, [&](int rank) -> std::string {
    logs[rank]->use("INFO");
    // The library is not in this rank before the others' has named it.
    if (rank == missing && !board.waitFor(named, 1, Seconds(60))) return "the others do not say that it is missing";
    ncclComm_t comm = nullptr;
    if (auto wrong = makeCommunicator(board, 0, rank, ranks, comm); !wrong.empty()) return wrong;
    ncclCommDestroy(comm);
    return "";
  });
  const char* const text = "2 of 3 ranks have come to the rendezvous";
  for (int i = 0; i < 6000 && logs[0]->text().find(text) == std::string::npos; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_NE(logs[0]->text().find("wait for the others: 1"), std::string::npos) << logs[0]->text();
  board.reach(named, 1);
  EXPECT_TRUE(forked.allRight());
}

}  // namespace
}  // namespace falcon::test
