// ncclCommAbort from another thread ends every kind of wait, and does not wait itself, whatever the peers do.
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <set>

#include "harness/api_rank.h"

namespace falcon::test {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr std::size_t large = 4 << 20;

/// What rank 1 does while rank 0 does nothing.
struct Wait {
  const char* name;
  ncclResult_t (*call)(ncclComm_t comm, std::vector<float>& data);
};
const Wait waits[] = {
    {"SmallAllReduce",
     [](ncclComm_t comm, std::vector<float>& data) {
       return ncclAllReduce(data.data(), data.data(), 10, ncclFloat, ncclMax, comm, hostStream);
     }},
    {"LargeAllReduce",
     [](ncclComm_t comm, std::vector<float>& data) {
       return ncclAllReduce(data.data(), data.data(), data.size(), ncclFloat, ncclMax, comm, hostStream);
     }},
    {"Send",
     [](ncclComm_t comm, std::vector<float>& data) {
       return ncclSend(data.data(), data.size(), ncclFloat, 0, comm, hostStream);
     }},
    {"Receive",
     [](ncclComm_t comm, std::vector<float>& data) {
       return ncclRecv(data.data(), data.size(), ncclFloat, 0, comm, hostStream);
     }},
    {"Group",
     [](ncclComm_t comm, std::vector<float>& data) {
       ncclGroupStart();
       ncclAllReduce(data.data(), data.data(), 100'000, ncclFloat, ncclMax, comm, hostStream);
       ncclRecv(data.data(), data.size(), ncclFloat, 0, comm, hostStream);
       ncclSend(data.data(), data.size(), ncclFloat, 0, comm, hostStream);
       return ncclGroupEnd();
     }},
    {"Split",
     [](ncclComm_t comm, std::vector<float>&) {
       ncclComm_t child = nullptr;
       return ncclCommSplit(comm, 0, 0, &child, nullptr);
     }},
};

class Abort : public testing::TestWithParam<std::tuple<Over, bool>> {};

TEST_P(Abort, EndsEveryWaitAtOnce) {
  const auto [over, peerStopped] = GetParam();
  enum Slot { waiting = 8, stopped = 9, ended = 10 };
  SharedBoard board;
  ForkedRanks forked(2, [&, over = over](int rank) -> std::string {
    choose(over);
    int number = 0;
    for (const Wait& wait : waits) {
      ncclComm_t comm = nullptr;
      if (auto wrong = makeCommunicator(board, number++, rank, 2, comm); !wrong.empty()) return wrong;
      if (auto wrong = sumIsRight(comm, rank, 2, 1000); !wrong.empty()) return wrong;
      if (rank == 0) {
        if (!board.waitFor(ended, number, Seconds(60))) return "rank 1 does not come back";
        // The news comes on its own.
        ncclResult_t state = ncclSuccess;
        for (int i = 0; i < 3000 && state == ncclSuccess; ++i) {
          ncclCommGetAsyncError(comm, &state);
          std::this_thread::sleep_for(std::chrono::milliseconds(10));
        }
        if (state != ncclRemoteError) return saying(wait.name, state);
        ncclCommAbort(comm);
        continue;
      }
      ncclResult_t outcome = ncclSuccess;
      std::thread stuck([&] {
        std::vector<float> data(large / sizeof(float));
        board.reach(waiting, number);
        outcome = wait.call(comm, data);
      });
      if (!board.waitFor(stopped, number)) return "the test does not answer";
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      const auto before = SteadyClock::now();
      if (const auto done = ncclCommAbort(comm); done != ncclSuccess) return saying("ncclCommAbort", done);
      stuck.join();
      const Seconds took = SteadyClock::now() - before;
      board.reach(ended, number);
      if (outcome == ncclSuccess) return std::string(wait.name) + " succeeded without rank 0";
      // Milliseconds where nothing else runs. Five seconds are what a farewell to a silent peer would take.
      if (took > Seconds(4.5)) return std::string(wait.name) + " took " + std::to_string(took.count()) + " s to end";
    }
    return "";
  });
  for (int number = 1; number <= static_cast<int>(std::size(waits)); ++number) {
    if (!board.waitFor(waiting, number, Seconds(60))) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    if (peerStopped) forked.signal(0, SIGSTOP);
    board.reach(stopped, number);
    const bool cameBack = board.waitFor(ended, number, Seconds(60));
    forked.signal(0, SIGCONT);
    if (!cameBack) break;
  }
  EXPECT_TRUE(forked.allRight());
}

std::string nameOfAbort(const testing::TestParamInfo<std::tuple<Over, bool>>& way) {
  return nameOf(std::get<0>(way.param)) + (std::get<1>(way.param) ? "PeerStopped" : "");
}
INSTANTIATE_TEST_SUITE_P(Over, Abort, testing::Combine(testing::ValuesIn(everyWay), testing::Bool()), nameOfAbort);

/// The threads of this process, by id.
std::set<std::string> threadIdsHere() {
  std::set<std::string> ids;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task")) ids.insert(entry.path().filename());
  return ids;
}

int threadsHere() {
  return static_cast<int>(std::distance(std::filesystem::directory_iterator("/proc/self/task"), {}));
}

/// A nonblocking communicator that is still being made: its thread must not wait for the missing ranks any longer.
TEST(Abort, EndsTheMakingOfACommunicator) {
  ForkedRanks forked(1, [](int) -> std::string {
    ncclUniqueId id;
    if (ncclGetUniqueId(&id) != ncclSuccess) return "no id";
    const int before = threadsHere();
    for (const int rank : {0, 1}) {
      ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
      config.blocking = 0;
      ncclComm_t comm = nullptr;
      if (const auto made = ncclCommInitRankConfig(&comm, 3, id, rank, &config); made != ncclInProgress)
        return saying("ncclCommInitRankConfig", made);
      ncclResult_t state = ncclSuccess;
      ncclCommGetAsyncError(comm, &state);
      if (state != ncclInProgress) return "it does not wait";
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
      if (const auto done = ncclCommAbort(comm); done != ncclSuccess) return saying("ncclCommAbort", done);
      for (int i = 0; i < 3000 && threadsHere() > before; ++i)
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
      if (threadsHere() > before) return "its thread goes on";
    }
    return "";
  });
  EXPECT_TRUE(forked.allRight(Seconds(90)));
}

/// Work in the background uses as many threads as communicators work at once, however many calls there are.
TEST(Nonblocking, CallsDoNotAddThreads) {
  constexpr int calls = 300;
  SharedBoard board;
  ForkedRanks forked(2, [&](int rank) -> std::string {
    ncclUniqueId id;
    if (auto wrong = agreeOnId(board, 0, rank, id); !wrong.empty()) return wrong;
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    ncclComm_t comm = nullptr;
    ncclCommInitRankConfig(&comm, 2, id, rank, &config);
    const auto outcome = [&] {
      ncclResult_t state = ncclInProgress;
      while (state == ncclInProgress) {
        std::this_thread::sleep_for(std::chrono::microseconds(100));
        ncclCommGetAsyncError(comm, &state);
      }
      return state;
    };
    if (outcome() != ncclSuccess) return saying("init", outcome());
    std::int32_t value = 1;
    std::set<std::string> seen;
    for (int i = 0; i < calls; ++i) {
      value = 1;
      ncclAllReduce(&value, &value, 1, ncclInt32, ncclSum, comm, hostStream);
      seen.merge(threadIdsHere());
      if (outcome() != ncclSuccess) return saying("ncclAllReduce", outcome());
      if (value != 2) return "wrong";
      seen.merge(threadIdsHere());
    }
    ncclCommDestroy(comm);
    // This one, the network thread, the one that made the communicator and may not have ended yet, and the worker. One
    // more where the first has told its outcome and is not back yet; or where it had nothing to do for long.
    return seen.size() <= 12 ? "" : std::to_string(seen.size()) + " threads";
  });
  EXPECT_TRUE(forked.allRight());
}

}  // namespace
}  // namespace falcon::test
