// The job is held when something goes wrong: a rank or the controller dies, nobody resumes it.
#include <gtest/gtest.h>
#include <signal.h>

#include "multi_rank/trap_job.h"

namespace falcon::test {
namespace {

using namespace std::chrono_literals;

constexpr int ranks = 4;
enum Slot { suspended = 9, told = 16 };  // the last one by rank

class Callbacks {
 public:
  Callbacks() { ncclFalconTrapCallbackAdd(&Callbacks::called, this); }
  ~Callbacks() { ncclFalconTrapCallbackRemove(&Callbacks::called, this); }
  std::atomic<int> held = 0, released = 0;

 private:
  static void called(int held, unsigned, void* context) {
    auto& self = *static_cast<Callbacks*>(context);
    ++(held == NCCL_FALCON_RELEASED ? self.released : self.held);
  }
};

/// Calls until one fails; how it did.
ncclResult_t callUntilItFails(const SharedBoard& board, ncclComm_t comm, int rank) {
  std::vector<float> data(1000);
  for (;;) {
    const auto done = ncclAllReduce(data.data(), data.data(), data.size(), ncclFloat, ncclMax, comm, hostStream);
    if (done != ncclSuccess) return done;
    board->steps[rank].fetch_add(1);
  }
}

/// `victim` is killed when the job is held by rank 2. All others get an error, long before the limit of the trap.
void othersAreLetGo(int victim, const char* onDeath) {
  SharedBoard board;
  const TrapJob job;
  const ToldProcesses processes(board, told, ranks);
  ForkedRanks forked(ranks, [&](int rank) -> std::string {
    job.join(rank, ranks);
    setenv("NCCL_FALCON_TRAP_DEATH", onDeath, 1);
    processes.note(rank);
    ncclComm_t comm = nullptr, own = nullptr;
    if (auto wrong = makeCommunicator(board, 0, rank, ranks, comm); !wrong.empty()) return wrong;
    // One that the victim is not in: only abort breaks it.
    if (const auto made = ncclCommSplit(comm, rank == victim ? 1 : 0, rank, &own, nullptr); made != ncclSuccess)
      return saying("split", made);
    std::thread holder([&] {
      if (rank != 2) return;
      board.waitFor(0, 10);
      if (suspendWhole(comm, 600'000, processes) == ncclSuccess) board.reach(suspended, 1);
    });
    const auto ended = callUntilItFails(board, comm, rank);
    holder.join();
    if (ended != ncclRemoteError) return saying("the call", ended);
    const bool aborts = std::string(onDeath) == "abort";
    ncclResult_t state = ncclSuccess;
    const auto deadline = std::chrono::steady_clock::now() + 30s;
    while (aborts && state == ncclSuccess && std::chrono::steady_clock::now() < deadline) {
      ncclCommGetAsyncError(own, &state);
      std::this_thread::sleep_for(5ms);
    }
    if (aborts != (state != ncclSuccess)) return saying("the communicator without the dead rank", state);
    ncclCommAbort(own);
    ncclCommAbort(comm);
    return "";
  });
  ASSERT_TRUE(board.waitFor(suspended, 1, Seconds(120)));
  forked.signal(victim, SIGKILL);
  for (int rank = 0; rank < ranks; ++rank) {
    const RankOutcome& outcome = forked.wait(rank, Seconds(150));
    if (rank == victim) continue;
    EXPECT_TRUE(outcome.ended) << "rank " << rank << " is still held";
    EXPECT_EQ(outcome.exitCode, 0) << outcome.report;
  }
}

TEST(TrapDeath, OfARankLetsTheOthersGo) {
  othersAreLetGo(3, "release");
}

TEST(TrapDeath, OfTheControllerLetsTheOthersGo) {
  othersAreLetGo(0, "release");
}

TEST(TrapDeath, OfARankAbortsTheOthersWhereThatIsAskedFor) {
  othersAreLetGo(3, "abort");
}

TEST(TrapDeath, OfTheControllerAbortsTheOthersWhereThatIsAskedFor) {
  othersAreLetGo(0, "abort");
}

TEST(TrapLimit, LiftsTheTrapAndTheJobGoesOn) {
  SharedBoard board;
  const TrapJob job;
  ForkedRanks forked(ranks, [&](int rank) -> std::string {
    job.join(rank, ranks);
    Callbacks callbacks;
    ncclComm_t comm = nullptr;
    if (auto wrong = makeCommunicator(board, 0, rank, ranks, comm); !wrong.empty()) return wrong;
    std::string trapped;
    std::thread holder([&] {
      if (rank != 1) return;
      board.waitFor(0, 10);
      if (const auto held = suspendPatiently(comm, 400); held != ncclSuccess) trapped = saying("suspend", held);
      const int then = board->steps[0].load();
      if (trapped.empty() && !board.waitFor(0, then + 5, Seconds(60))) trapped = "the job does not go on";
      if (trapped.empty() && ncclFalconResume(comm) != ncclInvalidUsage) trapped = "what was over has been resumed";
      board.reach(suspended, 1);
    });
    for (bool stop = false; !stop;) {
      std::int32_t over = board->steps[suspended].load();
      const auto done = ncclAllReduce(&over, &over, 1, ncclInt32, ncclMax, comm, hostStream);
      if (done != ncclSuccess) trapped = saying("the call", done);
      stop = over != 0 || done != ncclSuccess;
      board->steps[rank].store(board->steps[rank].load() + 1);
    }
    holder.join();
    // A call watches the limit itself: it goes on before the monitor has seen that, and told.
    for (int looks = 0; callbacks.released < callbacks.held && looks < 1000; ++looks)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    const int held = callbacks.held, released = callbacks.released;
    ncclCommDestroy(comm);
    if (trapped.empty() && (held < 1 || held != released))
      trapped = "callbacks: held " + std::to_string(held) + ", released " + std::to_string(released);
    return trapped;
  });
  EXPECT_TRUE(forked.allRight());
  EXPECT_NE(job.events().find("trap-timed-out"), std::string::npos) << job.events();
}

TEST(TrapCalls, AreRefusedWhereFalconIsOff) {
  ForkedRanks forked(1, [](int) -> std::string {
    setenv("NCCL_FALCON", "0", 1);
    SharedBoard board;
    ncclComm_t comm = nullptr;
    if (auto wrong = makeCommunicator(board, 0, 0, 1, comm); !wrong.empty()) return wrong;
    if (ncclFalconSuspend(comm, 0) != ncclInvalidUsage || ncclFalconResume(comm) != ncclInvalidUsage)
      return "not refused";
    if (ncclFalconSuspend(nullptr, 0) != ncclInvalidArgument) return "no communicator is fine";
    if (ncclFalconSuspend(comm, 4'000'000) != ncclInvalidArgument) return "longer than an hour is fine";
    if (ncclFalconTrapCallbackAdd(nullptr, nullptr) != ncclInvalidArgument) return "no callback is fine";
    ncclCommDestroy(comm);
    return "";
  });
  EXPECT_TRUE(forked.allRight());
}

}  // namespace
}  // namespace falcon::test
