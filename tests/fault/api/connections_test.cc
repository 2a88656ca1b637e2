// Connections that break, and ranks that stop for a while.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>

#include <cstdlib>
#include <filesystem>
#include <set>

#include "harness/api_rank.h"

namespace falcon::test {
namespace {

using SteadyClock = std::chrono::steady_clock;

/// This process's TCP connections, by number.
std::set<int> connectionsHere() {
  std::set<int> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    const int number = std::stoi(entry.path().filename());
    sockaddr_storage peer{};
    socklen_t length = sizeof peer;
    if (getpeername(number, reinterpret_cast<sockaddr*>(&peer), &length) == 0 &&
        (peer.ss_family == AF_INET || peer.ss_family == AF_INET6))
      found.insert(number);
  }
  return found;
}

/// As a firewall that has lost its memory: both ends get a reset.
void reset(int connection) {
  const sockaddr nobody{AF_UNSPEC, {}};
  connect(connection, &nobody, sizeof nobody);
}

enum class Which { data, all };
class Reset : public testing::TestWithParam<std::tuple<Which, int>> {};

TEST_P(Reset, OfConnectionsIsARemoteErrorOnAllRanks) {
  constexpr int ranks = 4;
  const auto [which, victim] = GetParam();
  SharedBoard board;
  enum Slot { moving = 0, resetDone = 8 };
  ForkedRanks forked(ranks, [&, which = which, victim = victim](int rank) -> std::string {
    setenv("NCCL_SHM_DISABLE", "1", 1);
    ncclComm_t comm = nullptr;
    if (auto wrong = makeCommunicator(board, 0, rank, ranks, comm); !wrong.empty()) return wrong;
    const auto before = which == Which::data ? connectionsHere() : std::set<int>();
    std::vector<std::int32_t> in(1'000'000, 1), out(in.size());
    std::thread breaker;
    if (rank == victim)
      breaker = std::thread([&] {
        board.waitFor(moving + victim, 3);
        for (const int connection : connectionsHere())
          if (!before.contains(connection)) reset(connection);
        board.reach(resetDone, 1);
      });
    ncclResult_t done = ncclSuccess;
    std::string wrong;
    for (int step = 1; done == ncclSuccess && wrong.empty(); ++step) {
      done = ncclAllReduce(in.data(), out.data(), in.size(), ncclInt32, ncclSum, comm, hostStream);
      if (done == ncclSuccess && (out.front() != ranks || out.back() != ranks)) wrong = "wrong data";
      board.reach(moving + rank, step);
    }
    if (breaker.joinable()) breaker.join();
    if (wrong.empty() && done != ncclRemoteError) wrong = saying("ncclAllReduce", done);
    ncclCommAbort(comm);
    return wrong;
  });
  ASSERT_TRUE(board.waitFor(resetDone, 1, Seconds(60)));
  for (int rank = 0; rank < ranks; ++rank) {
    const auto& outcome = forked.wait(rank, Seconds(60));
    EXPECT_TRUE(outcome.ended) << "rank " << rank << " hangs";
    EXPECT_EQ(outcome.report, "") << "rank " << rank;
  }
}
std::string nameOfReset(const testing::TestParamInfo<std::tuple<Which, int>>& kind) {
  return std::string(std::get<0>(kind.param) == Which::data ? "Data" : "All") + "OfRank" +
         std::to_string(std::get<1>(kind.param));
}
INSTANTIATE_TEST_SUITE_P(Of, Reset, testing::Combine(testing::Values(Which::data, Which::all), testing::Values(0, 2)),
                         nameOfReset);

/// Seconds that a rank stops: longer than the time after which a silent host counts as dead.
int stopSeconds() {
  const char* wanted = std::getenv("FALCON_TEST_STOP_SECONDS");  // scripts/check --full stops it for 60
  return wanted ? std::atoi(wanted) : 6;
}

class Stop : public testing::TestWithParam<Over> {};

/// With Falcon watching: it is slow for that time and not dead, whoever stops.
TEST_P(Stop, OfARankOnlyDelays) {
  constexpr int ranks = 3;
  const Over over = GetParam();
  const std::string job = "falcon-fault-stop-" + std::to_string(getpid());
  const std::string folder = "/dev/shm/nccl-falcon-" + std::to_string(getuid()) + "/" + job;
  const auto logs = logsOf(ranks);
  SharedBoard board;
  enum Slot { steps = 0, lastRound = 8 };
  ForkedRanks forked(ranks, [&](int rank) -> std::string {
    logs[rank]->use("WARN");
    setenv("NCCL_FALCON", "1", 1);
    setenv("NCCL_FALCON_JOB", job.c_str(), 1);
    setenv("RANK", std::to_string(rank).c_str(), 1);
    choose(over);
    ncclComm_t comm = nullptr;
    if (auto wrong = makeCommunicator(board, 0, rank, ranks, comm); !wrong.empty()) return wrong;
    std::int32_t last = 0;
    for (int step = 1; last == 0; ++step) {
      if (auto wrong = sumIsRight(comm, rank, ranks, step % 5 == 0 ? 300'000 : 50); !wrong.empty()) return wrong;
      board.reach(steps + rank, step);
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      // All leave after the same step.
      const std::int32_t mine = board->steps[lastRound].load();
      if (ncclAllReduce(&mine, &last, 1, ncclInt32, ncclMax, comm, hostStream) != ncclSuccess)
        return saying("ncclAllReduce", ncclRemoteError);
    }
    const auto done = ncclCommDestroy(comm);
    return done == ncclSuccess ? "" : saying("ncclCommDestroy", done);
  });
  ASSERT_TRUE(board.waitFor(steps, 20, Seconds(60)));
  const int victim = over == Over::memory ? 0 : ranks - 1;  // the one in the middle, and one at the edge
  forked.signal(victim, SIGSTOP);
  std::this_thread::sleep_for(std::chrono::seconds(stopSeconds()));
  forked.signal(victim, SIGCONT);
  const int reached = board->steps[steps].load();
  EXPECT_TRUE(board.waitFor(steps, reached + 20, Seconds(60))) << "it does not go on";
  board.reach(lastRound, 1);
  EXPECT_TRUE(forked.allRight(Seconds(60)));
  // Not what is said of a stranger, who has come to this port by mistake and "has died".
  for (int rank = 0; rank < ranks; ++rank)
    EXPECT_THAT(logs[rank]->text(), testing::Not(testing::ContainsRegex("rank [0-9][^\n]* died")));
  std::filesystem::remove_all(folder);
}
INSTANTIATE_TEST_SUITE_P(Over, Stop, testing::ValuesIn(everyWay), [](const auto& over) { return nameOf(over.param); });

}  // namespace
}  // namespace falcon::test
