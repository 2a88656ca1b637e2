// Sends and receives around a ring while a rank dies, stops or aborts.
#include <signal.h>

#include <cstdlib>

#include "harness/engine_rank.h"

namespace falcon::collectives {
namespace {

using test::ForkedRanks;
using test::joinCommunicator;
using test::Seconds;
using test::SharedBoard;

enum class Over { memory, shared };

class MessageFault : public testing::TestWithParam<std::tuple<int, Over>> {
 protected:
  int ranks() const { return std::get<0>(GetParam()); }
  /// Reading each other's memory, or by connections through shared memory.
  void chooseMedium() const { setenv("NCCL_P2P_DISABLE", std::get<1>(GetParam()) == Over::memory ? "0" : "1", 1); }
};

/// Each rank sends to the next and receives from the one before.
Status passOn(HostCommunicator& communicator, const std::vector<int>& out, std::vector<int>& in) {
  const int size = communicator.size(), rank = communicator.rank();
  const Submission group[] = {
      {&communicator,
       {Operation::send, DataType::i32, ReduceOp::sum, out.data(), nullptr, out.size(), (rank + 1) % size}},
      {&communicator,
       {Operation::receive, DataType::i32, ReduceOp::sum, nullptr, in.data(), in.size(), (rank + size - 1) % size}}};
  return communicator.run(group);
}

/// Says how many were right on the board. "" for a remote error.
std::string passOnUntilError(HostCommunicator& communicator, const SharedBoard& board, std::size_t count) {
  std::vector<int> out(count), in(count);
  for (int step = 1; step < 10'000'000; ++step) {
    out.front() = out.back() = step;
    const Status done = passOn(communicator, out, in);
    board.reach(communicator.rank(), step);
    if (!done) return done.error().code() == ErrorCode::remote ? "" : "not a remote error: " + done.error().message();
    if (in.front() != step || in.back() != step) return "another message";
  }
  return "never failed";
}

TEST_P(MessageFault, AKilledRankGivesARemoteErrorToAllOthers) {
  for (const std::size_t count : {2, 2000, 1'000'000}) {
    SharedBoard board;
    const Rank victim = ranks() - 1;
    ForkedRanks forked(ranks(), [&](Rank rank) {
      chooseMedium();
      const auto communicator = joinCommunicator(board, 0, rank, ranks());
      return passOnUntilError(*communicator, board, count);
    });
    ASSERT_TRUE(board.waitFor(victim, 3));
    forked.signal(victim, SIGKILL);
    for (Rank rank = 0; rank < victim; ++rank) EXPECT_EQ(forked.wait(rank, Seconds(60)).report, "");
  }
}

TEST_P(MessageFault, AStoppedRankOnlyDelays) {
  for (const std::size_t count : {2, 1'000'000}) {
    SharedBoard board;
    ForkedRanks forked(ranks(), [&](Rank rank) -> std::string {
      chooseMedium();
      const auto communicator = joinCommunicator(board, 0, rank, ranks());
      std::vector<int> out(count), in(count);
      for (int step = 1; step <= 40; ++step) {
        out.back() = step;
        test::orThrow(passOn(*communicator, out, in), "the messages");
        if (in.back() != step) return "another message";
        board.reach(rank, step);
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
      }
      return "";
    });
    ASSERT_TRUE(board.waitFor(0, 3));
    forked.signal(ranks() / 2, SIGSTOP);
    std::this_thread::sleep_for(std::chrono::milliseconds(700));
    forked.signal(ranks() / 2, SIGCONT);
    EXPECT_TRUE(forked.allRight());
  }
}

TEST_P(MessageFault, AnAbortEndsTheMessagesOfAll) {
  for (const std::size_t count : {2, 1'000'000}) {
    SharedBoard board;
    ForkedRanks forked(ranks(), [&](Rank rank) -> std::string {
      chooseMedium();
      const auto communicator = joinCommunicator(board, 0, rank, ranks());
      if (rank > 0) return passOnUntilError(*communicator, board, count);
      // While its own thread is in the middle of them.
      std::thread aborter([&] {
        board.waitFor(ranks() - 1, 5);
        (void)communicator->abort();
      });
      const std::string wrong = passOnUntilError(*communicator, board, count);
      aborter.join();
      return wrong;
    });
    EXPECT_TRUE(forked.allRight(Seconds(60)));
  }
}

// An error of the program: for all, and not a hang.
TEST_P(MessageFault, DifferentCountsAreAnErrorOnAllRanks) {
  for (const std::size_t count : {2, 1'000'000}) {
    SharedBoard board;
    ForkedRanks forked(ranks(), [&](Rank rank) -> std::string {
      chooseMedium();
      const auto communicator = joinCommunicator(board, 0, rank, ranks());
      std::vector<int> out(rank == 0 ? count : 500), in(500);
      for (int round = 0; round < 100; ++round)
        if (!passOn(*communicator, out, in)) return "";
      return "no error";
    });
    EXPECT_TRUE(forked.allRight(Seconds(60)));
  }
}

std::string placeName(const testing::TestParamInfo<std::tuple<int, Over>>& info) {
  return (std::get<1>(info.param) == Over::memory ? "Memory" : "Shared") + std::to_string(std::get<0>(info.param));
}
INSTANTIATE_TEST_SUITE_P(Ranks, MessageFault,
                         testing::Combine(testing::Values(2, 4), testing::Values(Over::memory, Over::shared)),
                         placeName);

}  // namespace
}  // namespace falcon::collectives
