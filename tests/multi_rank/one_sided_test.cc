// One-sided messages over connections: ranks as processes on nodes of their own, some of them two on one.
#include <gtest/gtest.h>

#include <random>

#include "harness/api_rank.h"

namespace falcon::test {
namespace {

constexpr std::size_t slotInts = 40'000;

/// Where rank `from` writes on every rank: a slot of its own. In each round every rank puts several pieces of random
/// lengths to every other, the last with the signal of that round's kind, and then looks at what it got.
class Rounds {
 public:
  Rounds(ncclComm_t comm, int rank, int size) : comm_(comm), rank_(rank), size_(size) {}

  std::string run(int rounds) {
    void* memory = nullptr;
    if (const auto got = ncclMemAlloc(&memory, slotInts * size_ * sizeof(int)); got != ncclSuccess)
      return saying("ncclMemAlloc", got);
    window_ = static_cast<int*>(memory);
    const auto made =
        ncclCommWindowRegister(comm_, memory, slotInts * size_ * sizeof(int), &handle_, NCCL_WIN_COLL_SYMMETRIC);
    if (made != ncclSuccess) return saying("ncclCommWindowRegister", made);
    for (int round = 0; round < rounds; ++round)
      if (auto wrong = one(round); !wrong.empty()) return "round " + std::to_string(round) + ": " + wrong;
    if (const auto gone = ncclCommWindowDeregister(comm_, handle_); gone != ncclSuccess)
      return saying("ncclCommWindowDeregister", gone);
    ncclMemFree(memory);
    return "";
  }

 private:
  static int valueOf(int round, int from, int to, std::size_t i) {
    return static_cast<int>(round * 1'000'003 + from * 10'007 + to * 101 + i * 7);
  }

  std::string one(int round) {
    std::mt19937 random(static_cast<unsigned>(round * 100 + rank_));
    const int index = round % 16, context = round % 4;
    std::vector<std::vector<int>> kept;
    for (int peer = 0; peer < size_; ++peer) {
      auto& mine = kept.emplace_back(slotInts);
      for (std::size_t i = 0; i < slotInts; ++i) mine[i] = valueOf(round, rank_, peer, i);
      for (std::size_t at = 0; at < slotInts;) {
        const std::size_t count = std::min<std::size_t>(slotInts - at, 1 + random() % slotInts);
        const auto put = ncclPutSignal(mine.data() + at, count, ncclInt, peer, handle_,
                                       (rank_ * slotInts + at) * sizeof(int), index, context, 0, comm_, hostStream);
        if (put != ncclSuccess) return saying("ncclPutSignal", put);
        at += count;
      }
    }
    return check(round, index, context);
  }

  /// How many pieces come is not known here: the last one is told apart by a signal of another kind, after them.
  std::string check(int round, int index, int context) {
    const int last = (index + 1) % 16;
    std::vector<ncclWaitSignalDesc_t> all;
    for (int peer = 0; peer < size_; ++peer) {
      if (const auto told = ncclSignal(peer, last, context, 0, comm_, hostStream); told != ncclSuccess)
        return saying("ncclSignal", told);
      all.push_back({1, peer, last, context});
    }
    if (const auto come = ncclWaitSignal(size_, all.data(), comm_, hostStream); come != ncclSuccess)
      return saying("ncclWaitSignal", come);
    for (int from = 0; from < size_; ++from)
      for (std::size_t i = 0; i < slotInts; ++i)
        if (window_[from * slotInts + i] != valueOf(round, from, rank_, i))
          return "element " + std::to_string(i) + " of rank " + std::to_string(from) + " is not there";
    return sumIsRight(comm_, rank_, size_, 1);  // nobody writes over it before all have looked
  }

  const ncclComm_t comm_;
  const int rank_, size_;
  int* window_ = nullptr;
  ncclWindow_t handle_ = nullptr;
};

class OneSidedBetweenNodes : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, OneSidedBetweenNodes, testing::Values(2, 3, 6));

TEST_P(OneSidedBetweenNodes, SignalsFollowTheirData) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP()
      << "what one rank writes after another has read is ordered by messages of processes, of which the thread "
         "sanitizer sees one";
#endif
  const int ranks = GetParam();
  SharedBoard board;
  ForkedRanks forked(ranks, [&](int rank) -> std::string {
    setenv("NCCL_HOSTID", ("node" + std::to_string(rank / 2 * (ranks > 2) + rank % 2 * (ranks == 2))).c_str(), 1);
    ncclComm_t comm = nullptr, half = nullptr;
    if (auto wrong = makeCommunicator(board, 0, rank, ranks, comm); !wrong.empty()) return wrong;
    if (auto wrong = Rounds(comm, rank, ranks).run(8); !wrong.empty()) return wrong;
    // A part has windows of its own, beside the whole's.
    if (const auto made = ncclCommSplit(comm, rank % 2, rank, &half, nullptr); made != ncclSuccess)
      return saying("ncclCommSplit", made);
    int size = 0, place = 0;
    ncclCommCount(half, &size);
    ncclCommUserRank(half, &place);
    if (auto wrong = Rounds(half, place, size).run(3); !wrong.empty()) return "the half, " + wrong;
    if (auto wrong = Rounds(comm, rank, ranks).run(3); !wrong.empty()) return "again, " + wrong;
    ncclCommDestroy(half);
    ncclCommDestroy(comm);
    return "";
  });
  ASSERT_TRUE(forked.allRight());
}

}  // namespace
}  // namespace falcon::test
