// A host that falls silent: its kernel no longer answers, no connection is closed. Two network namespaces, and a cable
// that is pulled.
#include <sched.h>
#include <unistd.h>

#include <cstdlib>

#include "harness/engine_rank.h"

namespace falcon::collectives {
namespace {

using test::ForkedRanks;
using test::joinCommunicator;
using test::Seconds;
using test::SharedBoard;

bool shell(const std::string& command) {
  return std::system((command + " >/dev/null 2>&1").c_str()) == 0;
}

enum Slot { inNamespace = 0, wired = 2, running = 4, told = 6 };  // all but `wired` by rank

const auto testBegan = std::chrono::steady_clock::now();  // the same in all ranks, which are forked
int millisecondsSoFar() {
  const auto passed = std::chrono::steady_clock::now() - testBegan;
  return static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(passed).count());
}

/// Ranks 0 and 1, each in a network namespace of its own; the test ties a cable between them when both are there.
std::string rankBody(const SharedBoard& board, Rank rank, std::size_t count) {
  setenv("NCCL_HOSTID", ("host" + std::to_string(rank)).c_str(), 1);
  setenv("NCCL_SOCKET_IFNAME", "=cable", 1);
  if (unshare(CLONE_NEWNET) != 0) return "not permitted";
  board.reach(inNamespace + rank, 1);
  if (!board.waitFor(wired, 1)) return "no cable";
  const std::string address = "10.217.9." + std::to_string(rank + 1);
  if (!shell("ip addr add " + address + "/24 dev cable && ip link set cable up && ip link set lo up"))
    return "no address";
  const auto communicator = joinCommunicator(board, 0, rank, 2);
  std::vector<float> data(count, 1);
  for (int step = 1;; ++step) {
    const Status done =
        test::run(*communicator, {Operation::allReduce, DataType::f32, ReduceOp::max, data.data(), data.data(), count});
    if (!done) board.reach(told + rank, millisecondsSoFar());
    if (!done && done.error().code() == ErrorCode::remote) return "";
    if (!done) return "not a remote error: " + done.error().message();
    board.reach(running + rank, step);
  }
}

class HalfOpen : public testing::TestWithParam<std::size_t> {};

TEST_P(HalfOpen, ASilentHostIsARemoteErrorInAFewSeconds) {
  SharedBoard board;
  ForkedRanks forked(2, [&](Rank rank) { return rankBody(board, rank, GetParam()); });
  for (Rank rank : {0, 1}) {
    if (board.waitFor(inNamespace + rank, 1)) continue;
    GTEST_SKIP() << "network namespaces are not permitted here: " << forked.wait(rank, Seconds(1)).report;
  }
  // Named by process: nothing of it outlives the namespaces.
  const std::string names[] = {"fc" + std::to_string(forked.pid(0)), "fd" + std::to_string(forked.pid(0))};
  if (!shell("ip link add " + names[0] + " type veth peer name " + names[1]))
    GTEST_SKIP() << "virtual cables are not permitted here";
  for (Rank rank : {0, 1})
    ASSERT_TRUE(shell("ip link set " + names[rank] + " netns " + std::to_string(forked.pid(rank)) + " name cable"));
  board.reach(wired, 1);
  ASSERT_TRUE(board.waitFor(running, 3)) << forked.wait(1, Seconds(1)).report;
  // Both send to an address that nobody has: nothing arrives any more, and no socket hears of it.
  for (Rank rank : {0, 1})
    ASSERT_TRUE(shell("nsenter -t " + std::to_string(forked.pid(rank)) + " -n ip neigh replace 10.217.9." +
                      std::to_string(2 - rank) + " lladdr 02:00:00:00:00:99 nud permanent dev cable"));
  const int silent = millisecondsSoFar();
  for (Rank rank : {0, 1}) {
    const auto& outcome = forked.wait(rank, Seconds(60));
    EXPECT_TRUE(outcome.ended) << "rank " << rank << " hangs";
    EXPECT_EQ(outcome.report, "");
    // 4.6 s measured, of which 4 are NCCL_FALCON_DEATH_TIMEOUT; the rest is room for a loaded machine.
    EXPECT_GT(board->steps[told + rank].load(), 0) << "rank " << rank;
    EXPECT_LT(board->steps[told + rank].load() - silent, 10'000) << "rank " << rank;
  }
}
INSTANTIATE_TEST_SUITE_P(Counts, HalfOpen, testing::Values(10, 1'000'000));

}  // namespace
}  // namespace falcon::collectives
