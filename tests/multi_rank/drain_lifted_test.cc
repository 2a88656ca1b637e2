// Traps that cannot close, since a rank or its device does not go on, are lifted everywhere.
#include <gtest/gtest.h>

#include <optional>

#include "harness/spinning_vendor.h"
#include "multi_rank/spinning_job.h"

namespace falcon::test {
namespace {

using harness::SharedArena;

/// One of two ranks, with a stream.
struct Member {
  Streams streams;
  void* const stream = streams.create();
  ncclComm_t comm = nullptr;

  ncclResult_t sum(const std::int64_t& mine, std::int64_t& all) const {
    return ncclAllReduce(&mine, &all, 1, ncclInt64, ncclSum, comm, asCuda(stream));
  }
  void synchronize() { streams.synchronize(stream); }
};

/// "" or what went wrong.
std::string join(const TrapJob& job, const SharedBoard& board, int rank, const char* entrySeconds,
                 std::optional<Member>& member) {
  job.join(rank, 2);
  useSpinningVendor();
  setenv("NCCL_FALCON_TRAP_ENTRY", entrySeconds, 1);
  member.emplace();
  return makeCommunicator(board, 0, rank, 2, member->comm);
}

// Rank 0 has launched what rank 1 only launches when the job has been let go.
TEST(Drain, WhereARankDoesNotGoOnTheTrapIsLiftedEverywhere) {
  enum { launched = 0, lifted, found, told };  // the last one by rank
  const TrapJob job;
  const SharedArena arena;
  const SharedBoard board;
  const ToldProcesses processes(board, told, 2);
  ForkedRanks forked(2, [&](int rank) -> std::string {
    std::optional<Member> member;
    // Who does not call counts as held after 3 s.
    if (auto wrong = join(job, board, rank, "6", member); !wrong.empty()) return wrong;
    processes.note(rank);
    const std::int64_t mine[] = {rank + 1, 10 + 10 * rank, rank};
    std::int64_t sums[3] = {};
    const auto sum = [&](int i) { return member->sum(mine[i], sums[i]); };
    OR_SAY(sum(0));
    member->synchronize();
    if (rank == 1) OR_SAY(suspendWhole(member->comm, 60'000, processes));
    if (rank == 1) OR_SAY(ncclFalconResume(member->comm));
    if (rank == 1) board.reach(found, 1);
    if (!board.waitFor(found, 1)) return "the job was never held";
    if (rank == 1) {
      if (!board.waitFor(launched, 1)) return "rank 0 did not launch";
      const auto held = ncclFalconSuspend(member->comm, 60'000);
      if (held == ncclSuccess) OR_SAY(ncclFalconResume(member->comm));
      if (held != ncclSystemError) return saying("suspend", held);
      board.reach(lifted, 1);
    } else {
      OR_SAY(sum(1));
      board.reach(launched, 1);
    }
    if (!board.waitFor(lifted, 1, Seconds(60))) return "the trap was not lifted";
    if (rank == 1) OR_SAY(sum(1));
    OR_SAY(sum(2));
    member->synchronize();
    OR_SAY(ncclCommDestroy(member->comm));
    return sums[0] == 3 && sums[1] == 30 && sums[2] == 1 ? "" : "a sum is wrong";
  });
  EXPECT_TRUE(forked.allRight());
  EXPECT_NE(job.events().find("rank 1 had to make calls that others are waiting in, and did not"), std::string::npos)
      << job.events();
}

// All have entered the same, but on rank 0's device it does not come to an end.
TEST(Drain, WhereADeviceDoesNotComeToAnEndTheTrapIsLiftedEverywhere) {
  enum { entered = 0, found = 2, lifted, heldAgain, told };  // the first and the last one by rank
  const TrapJob job;
  const SharedArena arena;
  const SharedBoard board;
  const ToldProcesses processes(board, told, 2);
  ForkedRanks forked(2, [&](int rank) -> std::string {
    std::optional<Member> member;
    // Who does not call counts as held after 3 s.
    if (auto wrong = join(job, board, rank, "10", member); !wrong.empty()) return wrong;
    processes.note(rank);
    const std::int64_t mine = rank + 1;
    std::int64_t sums[2] = {};
    const auto sum = [&](int i) { return member->sum(mine, sums[i]); };
    OR_SAY(sum(0));
    member->synchronize();
    if (rank == 1) OR_SAY(suspendWhole(member->comm, 60'000, processes));
    if (rank == 1) OR_SAY(ncclFalconResume(member->comm));
    if (rank == 1) board.reach(found, 1);
    if (!board.waitFor(found, 1, Seconds(60))) return "the job was never held";
    if (rank == 0) member->streams.block(member->stream, true);
    OR_SAY(sum(1));
    board.reach(entered + rank, 1);
    if (!board.waitFor(entered + 1 - rank, 1)) return "the other rank did not come";
    ncclResult_t held = ncclSystemError;
    if (rank == 1) {
      held = ncclFalconSuspend(member->comm, 60'000);
      if (held == ncclSuccess) OR_SAY(ncclFalconResume(member->comm));
      board.reach(lifted, 1);
    }
    if (!board.waitFor(lifted, 1, Seconds(60))) return "the trap was not lifted";
    if (rank == 0) member->streams.block(member->stream, false);
    member->synchronize();
    // With the work done the job can be held.
    if (rank == 1) OR_SAY(ncclFalconSuspend(member->comm, 60'000));
    if (rank == 1) OR_SAY(ncclFalconResume(member->comm));
    if (rank == 1) board.reach(heldAgain, 1);
    if (!board.waitFor(heldAgain, 1, Seconds(60))) return "the job was not held again";
    OR_SAY(ncclCommDestroy(member->comm));
    if (held != ncclSystemError) return saying("suspend with a device that works", held);
    return sums[0] == 3 && sums[1] == 3 ? "" : "a sum is wrong";
  });
  EXPECT_TRUE(forked.allRight());
  EXPECT_NE(job.events().find("had launched on the device did not come to its end"), std::string::npos) << job.events();
}

}  // namespace
}  // namespace falcon::test
