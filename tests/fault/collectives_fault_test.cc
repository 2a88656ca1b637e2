// Ranks that die, stop or fall silent inside a collective: the others get ncclRemoteError within five seconds, or the
// right result when it was only a stop.
#include <signal.h>
#include <sys/socket.h>

#include <cstdlib>

#include "harness/engine_rank.h"
#include "harness/rank_buffers.h"

namespace falcon::collectives {
namespace {

using test::ForkedRanks;
using test::joinCommunicator;
using test::RankBuffers;
using test::Seconds;
using test::SharedBoard;
using SteadyClock = std::chrono::steady_clock;

enum class Over { memory, shared, sockets, plugin };

/// Where on the board a rank says when it was told of an error; steps come first.
constexpr int toldAt = 16;

const auto programBegan = SteadyClock::now();  // the same in all ranks, which are forked
int millisecondsNow() {
  return static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(SteadyClock::now() - programBegan).count());
}

Call allReduce(std::vector<float>& data) {
  return {Operation::allReduce, DataType::f32, ReduceOp::max, data.data(), data.data(), data.size()};
}

/// Repeats an AllReduce until it fails; says how many were right on the board. "" for a remote error that stays.
std::string reduceUntilError(HostCommunicator& communicator, const SharedBoard& board, std::size_t count) {
  std::vector<float> data(count, 1);
  const auto begun = SteadyClock::now();
  for (int step = 1; SteadyClock::now() - begun < Seconds(60); ++step) {
    const Status done = test::run(communicator, allReduce(data));
    board.reach(communicator.rank(), step);
    if (done) continue;
    board.reach(toldAt + communicator.rank(), millisecondsNow());
    if (done.error().code() != ErrorCode::remote) return "not a remote error: " + done.error().message();
    const Status again = test::run(communicator, allReduce(data));
    if (again || again.error().message() != done.error().message()) return "the error does not stay";
    if (communicator.asyncError()) return "asyncError() says success";
    if (communicator.split(0, 0, {})) return "split of a broken communicator succeeds";
    return "";
  }
  return "never failed";
}

class Fault : public testing::TestWithParam<std::tuple<int, Over>> {
 protected:
  int ranks() const { return std::get<0>(GetParam()); }
  void chooseMedium() const {
    const Over over = std::get<1>(GetParam());
    setenv("NCCL_SHM_DISABLE", over == Over::sockets || over == Over::plugin ? "1" : "0", 1);
    setenv("NCCL_P2P_DISABLE", over == Over::memory ? "0" : "1", 1);
    setenv("NCCL_NET_PLUGIN", over == Over::plugin ? FALCON_FAKE_NETS "/libnccl-net-fake12.so" : "none", 1);
    setenv("NCCL_NET", over == Over::plugin ? "Fake" : "Socket", 1);
  }
};

TEST_P(Fault, AKilledRankGivesARemoteErrorToAllOthers) {
  // The first, the last and one in between; small and large messages, so that it dies waiting as well as moving.
  for (const Rank victim : {0, ranks() - 1, ranks() / 2})
    for (const std::size_t count : {10, 2'000'000}) {
      SharedBoard board;
      ForkedRanks forked(ranks(), [&](Rank rank) {
        chooseMedium();
        const auto communicator = joinCommunicator(board, 0, rank, ranks());
        return reduceUntilError(*communicator, board, count);
      });
      ASSERT_TRUE(board.waitFor(victim, 3));
      forked.signal(victim, SIGKILL);
      const int death = millisecondsNow();
      for (Rank rank = 0; rank < ranks(); ++rank) {
        if (rank == victim) continue;
        const auto& outcome = forked.wait(rank, Seconds(60));
        EXPECT_TRUE(outcome.ended) << "rank " << rank << " hangs after the death of " << victim;
        EXPECT_EQ(outcome.report, "");
        const int told = board->steps[toldAt + rank].load();
        EXPECT_GT(told, 0) << "rank " << rank;
        EXPECT_LT(told - death, 5000) << "rank " << rank;
      }
      if (HasFailure()) return;
    }
}

/// Whoever is left is more than one rank.
class FaultAmongMany : public Fault {};

TEST_P(FaultAmongMany, TheOthersGoOnWithoutAKilledRank) {
  for (const Rank victim : {0, ranks() - 1}) {
    SharedBoard board;
    ForkedRanks forked(ranks(), [&](Rank rank) -> std::string {
      chooseMedium();
      const auto communicator = joinCommunicator(board, 0, rank, ranks());
      if (auto wrong = reduceUntilError(*communicator, board, 1000); !wrong.empty()) return wrong;
      if (communicator->shrink(std::vector<Rank>{victim}, false, {}))
        return "a broken communicator shrinks without a word";
      const auto rest = test::orThrow(communicator->shrink(std::vector<Rank>{victim}, true, {}), "shrink");
      std::vector<float> data(5000, static_cast<float>(rank + 1));
      test::orThrow(test::run(*rest, allReduce(data)), "AllReduce");
      const Rank greatest = victim == ranks() - 1 ? ranks() - 2 : ranks() - 1;
      return data.back() == static_cast<float>(greatest + 1) ? "" : "wrong result";
    });
    ASSERT_TRUE(board.waitFor(victim, 3));
    forked.signal(victim, SIGKILL);
    for (Rank rank = 0; rank < ranks(); ++rank)
      if (rank != victim) {
        EXPECT_EQ(forked.wait(rank, Seconds(60)).report, "") << "rank " << rank << " without " << victim;
      }
  }
}

TEST_P(Fault, AStoppedRankOnlyDelays) {
  SharedBoard board;
  ForkedRanks forked(ranks(), [&](Rank rank) -> std::string {
    chooseMedium();
    const auto communicator = joinCommunicator(board, 0, rank, ranks());
    for (int step = 1; step <= 40; ++step) {
      RankBuffers buffers({Operation::allReduce, DataType::f32, ReduceOp::sum, nullptr, nullptr, 100'000}, rank,
                          ranks(), true);
      test::orThrow(test::run(*communicator, buffers.call()), "AllReduce");
      if (const auto right = buffers.check(); !right) return right.message();
      board.reach(rank, step);
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return "";
  });
  ASSERT_TRUE(board.waitFor(0, 3));
  const Rank victim = ranks() / 2;
  forked.signal(victim, SIGSTOP);
  std::this_thread::sleep_for(std::chrono::seconds(3));
  forked.signal(victim, SIGCONT);
  EXPECT_TRUE(forked.allRight());
}

TEST_P(Fault, AnAbortEndsTheOperationsOfAll) {
  SharedBoard board;
  ForkedRanks forked(ranks(), [&](Rank rank) -> std::string {
    chooseMedium();
    const auto communicator = joinCommunicator(board, 0, rank, ranks());
    if (rank == ranks() - 1) {
      // While its own thread is inside a collective too.
      std::thread aborter([&] {
        board.waitFor(0, 5);
        (void)communicator->abort();
      });
      const std::string wrong = reduceUntilError(*communicator, board, 1000);
      aborter.join();
      return wrong;
    }
    return reduceUntilError(*communicator, board, 1000);
  });
  EXPECT_TRUE(forked.allRight());
}

TEST_P(FaultAmongMany, OtherCommunicatorsGoOn) {
  SharedBoard board;
  const Rank victim = ranks() - 1;
  ForkedRanks forked(ranks(), [&](Rank rank) -> std::string {
    chooseMedium();
    const auto world = joinCommunicator(board, 0, rank, ranks());
    const auto survivors = test::orThrow(world->split(rank == victim ? 1 : 0, rank, {}), "split");
    const std::string wrong = reduceUntilError(*world, board, 1000);
    if (!wrong.empty()) return wrong;
    RankBuffers buffers({Operation::allReduce, DataType::i32, ReduceOp::sum, nullptr, nullptr, 5000}, survivors->rank(),
                        survivors->size(), false);
    test::orThrow(test::run(*survivors, buffers.call()), "AllReduce of the survivors");
    const auto right = buffers.check();
    return right ? "" : right.message();
  });
  ASSERT_TRUE(board.waitFor(victim, 3));
  forked.signal(victim, SIGKILL);
  for (Rank rank = 0; rank < victim; ++rank) EXPECT_EQ(forked.wait(rank, Seconds(60)).report, "");
}

// A rank whose call does not fit the others' is an error of the program: an error for all, not a hang.
TEST_P(Fault, DifferentCountsAreAnErrorOnAllRanks) {
  SharedBoard board;
  ForkedRanks forked(ranks(), [&](Rank rank) -> std::string {
    chooseMedium();
    const auto communicator = joinCommunicator(board, 0, rank, ranks());
    std::vector<float> data(rank == 1 ? 500 : 400);
    const Status done = test::run(
        *communicator, {Operation::broadcast, DataType::f32, ReduceOp::sum, data.data(), data.data(), data.size(), 0});
    // The root may be done before anyone notices; the next collective tells it.
    const Status next = done ? test::run(*communicator, allReduce(data)) : done;
    return next ? "no error" : "";
  });
  EXPECT_TRUE(forked.allRight());
}

std::string placeName(const testing::TestParamInfo<std::tuple<int, Over>>& info) {
  const char* names[] = {"Memory", "Shared", "Sockets", "Plugin"};
  return names[static_cast<int>(std::get<1>(info.param))] + std::to_string(std::get<0>(info.param));
}
const auto everywhere = testing::Values(Over::memory, Over::shared, Over::sockets, Over::plugin);
INSTANTIATE_TEST_SUITE_P(Ranks, Fault, testing::Combine(testing::Values(2, 4), everywhere), placeName);
INSTANTIATE_TEST_SUITE_P(Ranks, FaultAmongMany, testing::Combine(testing::Values(4), everywhere), placeName);

}  // namespace
}  // namespace falcon::collectives
