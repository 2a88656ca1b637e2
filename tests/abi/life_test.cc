// How communicators end and what may become of them: revoked, shrunk, finalized.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

#include "abi/ranks.h"

namespace falcon::abi {
namespace {

using testing::HasSubstr;

/// The sum of `value` over the ranks.
float sumOver(ncclComm_t comm, float value) {
  float sum = -1;
  EXPECT_EQ(ncclSuccess, ncclAllReduce(&value, &sum, 1, ncclFloat, ncclSum, comm, noStream)) << ncclGetLastError(comm);
  return sum;
}

int rankIn(ncclComm_t comm) {
  int rank = -1;
  EXPECT_EQ(ncclSuccess, ncclCommUserRank(comm, &rank));
  return rank;
}

class Shrink : public testing::TestWithParam<int> {};

TEST_P(Shrink, LeavesTheOthersInOrderWhateverRankIsExcluded) {
  constexpr int size = 4;
  const int flags = GetParam();
  for (int excluded = 0; excluded < size; ++excluded)
    withRanks(size, [&](int rank, ncclComm_t comm) {
      if (rank == excluded) return;
      int list[] = {excluded};
      Communicator child;
      NCCL_OK(ncclCommShrink(comm, list, 1, &child.handle, nullptr, flags));
      int count = 0;
      NCCL_OK(ncclCommCount(child.handle, &count));
      EXPECT_EQ(count, size - 1);
      EXPECT_EQ(rankIn(child.handle), rank - (rank > excluded));
      EXPECT_EQ(sumOver(child.handle, static_cast<float>(rank)), 6 - excluded);
    });
}

TEST_P(Shrink, CanBeRepeatedDownToOne) {
  const int flags = GetParam();
  withRanks(3, [&](int rank, ncclComm_t comm) {
    int last = 2;
    if (rank == 2) return;
    Communicator two, one;
    NCCL_OK(ncclCommShrink(comm, &last, 1, &two.handle, nullptr, flags));
    EXPECT_EQ(sumOver(two.handle, 1), 2);
    int first = 0;
    if (rank == 0) return;
    NCCL_OK(ncclCommShrink(two.handle, &first, 1, &one.handle, nullptr, flags));
    EXPECT_EQ(sumOver(one.handle, 1), 1);
  });
}

// Ranks 0 and 1 go on without 2, then 0 and 2 without 1: rank 0 has shrunk the parent once more often than rank 2.
TEST_P(Shrink, CanLeaveOthersEachTime) {
  const int flags = GetParam();
  withRanks(3, [&](int rank, ncclComm_t comm) {
    for (int excluded : {2, 1, 2}) {
      if (rank == excluded) continue;
      Communicator two;
      NCCL_OK(ncclCommShrink(comm, &excluded, 1, &two.handle, nullptr, flags));
      EXPECT_EQ(sumOver(two.handle, 1), 2);
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Flags, Shrink, testing::Values(NCCL_SHRINK_DEFAULT, NCCL_SHRINK_ABORT),
                         [](const auto& kind) { return kind.param == NCCL_SHRINK_ABORT ? "Abort" : "Default"; });

TEST(ShrinkDefault, LeavesTheParentAtWork) {
  withRanks(3, [](int rank, ncclComm_t comm) {
    int list[] = {0};
    Communicator child;
    if (rank != 0) {
      NCCL_OK(ncclCommShrink(comm, list, 1, &child.handle, nullptr, NCCL_SHRINK_DEFAULT));
    }
    EXPECT_EQ(sumOver(comm, 1), 3);
    if (child.handle) {
      EXPECT_EQ(sumOver(child.handle, 1), 2);
    }
  });
}

// A rank that never comes to the parent's collective: the others give up and go on without it.
TEST(ShrinkAbort, EndsWhatHangs) {
  std::atomic<int> hanging{0}, gone{0};
  withRanks(3, [&](int rank, ncclComm_t comm) {
    // It stays in the communicator: to leave would be an error for those who wait.
    if (rank == 0) {
      while (gone < 2) std::this_thread::yield();
      return;
    }
    float value = 1;
    std::thread stuck([&] {
      ++hanging;
      EXPECT_EQ(ncclAllReduce(&value, &value, 1, ncclFloat, ncclSum, comm, noStream), ncclInvalidUsage);
    });
    while (hanging < 2) std::this_thread::yield();
    int list[] = {0};
    Communicator child;
    NCCL_OK(ncclCommShrink(comm, list, 1, &child.handle, nullptr, NCCL_SHRINK_ABORT));
    stuck.join();
    ++gone;
    EXPECT_EQ(sumOver(child.handle, 1), 2);
  });
}

TEST(ShrinkAbort, WorksOnACommunicatorThatARankHasAborted) {
  std::atomic<bool> aborted{false};
  withRanks(3, [&](int rank, ncclComm_t& comm) {
    if (rank == 0) {
      // The rank in the middle of the star.
      NCCL_OK(ncclCommAbort(std::exchange(comm, nullptr)));
      aborted = true;
      return;
    }
    while (!aborted) std::this_thread::yield();
    while (outcomeOf(comm) == ncclSuccess) std::this_thread::yield();  // the news is on its way
    EXPECT_EQ(outcomeOf(comm), ncclRemoteError);
    int list[] = {0};
    Communicator child;
    NCCL_OK(ncclCommShrink(comm, list, 1, &child.handle, nullptr, NCCL_SHRINK_ABORT));
    EXPECT_EQ(sumOver(child.handle, 1), 2);
  });
}

TEST(Shrink, RefusesWhatCannotBe) {
  withRanks(2, [](int rank, ncclComm_t comm) {
    const int other = 1 - rank;
    ncclComm_t child = nullptr;
    const auto shrink = [&](std::vector<int> list, int flags = NCCL_SHRINK_DEFAULT) {
      return ncclCommShrink(comm, list.data(), static_cast<int>(list.size()), &child, nullptr, flags);
    };
    EXPECT_EQ(shrink({}), ncclInvalidArgument);
    EXPECT_EQ(shrink({2}), ncclInvalidArgument);
    EXPECT_EQ(shrink({-1}), ncclInvalidArgument);
    EXPECT_EQ(shrink({other, other}), ncclInvalidArgument);
    EXPECT_EQ(shrink({rank}), ncclInvalidArgument);
    EXPECT_THAT(ncclGetLastError(nullptr), HasSubstr("excluded ranks do not call"));
    EXPECT_EQ(shrink({other}, 2), ncclInvalidArgument);
    int list[] = {other};
    EXPECT_EQ(ncclCommShrink(comm, nullptr, 1, &child, nullptr, 0), ncclInvalidArgument);
    EXPECT_EQ(ncclCommShrink(comm, list, 1, nullptr, nullptr, 0), ncclInvalidArgument);
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.magic = 0;
    EXPECT_EQ(ncclCommShrink(comm, list, 1, &child, &config, 0), ncclInvalidArgument);
    EXPECT_EQ(child, nullptr);
    // None of this did any harm.
    EXPECT_EQ(sumOver(comm, 1), 2);
    NCCL_OK(ncclCommFinalize(comm));
    EXPECT_EQ(shrink({other}), ncclInvalidUsage);
    EXPECT_EQ(ncclCommSplit(comm, 0, 0, &child, nullptr), ncclInvalidUsage);
  });
}

TEST(Revoke, EndsWhatRunsAndRefusesWhatComes) {
  withRanks(2, [](int, ncclComm_t comm) {
    float in = 1, out = 0;
    std::atomic<bool> running{false};
    // Rank by rank nobody's partner comes: each waits for a message of the other.
    std::thread stuck([&] {
      running = true;
      int rank = -1;
      EXPECT_EQ(ncclSuccess, ncclCommUserRank(comm, &rank));
      EXPECT_EQ(ncclRecv(&out, 1, ncclFloat, 1 - rank, comm, noStream), ncclInvalidUsage);
    });
    while (!running) std::this_thread::yield();
    NCCL_OK(ncclCommRevoke(comm, NCCL_REVOKE_DEFAULT));
    stuck.join();
    EXPECT_EQ(ncclAllReduce(&in, &out, 1, ncclFloat, ncclSum, comm, noStream), ncclInvalidUsage);
    EXPECT_THAT(ncclGetLastError(comm), HasSubstr("revoked"));
    ncclResult_t state = ncclInternalError;
    NCCL_OK(ncclCommGetAsyncError(comm, &state));
    EXPECT_EQ(state, ncclSuccess);
    EXPECT_EQ(ncclCommFinalize(comm), ncclInvalidUsage);
    NCCL_OK(ncclCommRevoke(comm, NCCL_REVOKE_DEFAULT));
    EXPECT_EQ(ncclCommRevoke(comm, 1), ncclInvalidArgument);
  });
}

TEST(Revoke, LeavesSplitAndShrink) {
  withRanks(3, [](int rank, ncclComm_t comm) {
    NCCL_OK(ncclCommRevoke(comm, NCCL_REVOKE_DEFAULT));
    Communicator all, two;
    NCCL_OK(ncclCommSplit(comm, 0, -rank, &all.handle, nullptr));
    EXPECT_EQ(sumOver(all.handle, 1), 3);
    EXPECT_EQ(rankIn(all.handle), 2 - rank);
    int list[] = {1};
    if (rank == 1) return;
    NCCL_OK(ncclCommShrink(comm, list, 1, &two.handle, nullptr, NCCL_SHRINK_DEFAULT));
    EXPECT_EQ(sumOver(two.handle, 1), 2);
  });
}

TEST(InitRankScalable, TakesAsManyIdsAsThereAreRanksAtMost) {
  constexpr int size = 3;
  std::vector<ncclUniqueId> ids(size);
  for (ncclUniqueId& id : ids) NCCL_OK(ncclGetUniqueId(&id));
  for (int idCount = 1; idCount <= size; ++idCount) {
    std::vector<std::thread> threads;
    for (ncclUniqueId& id : ids) NCCL_OK(ncclGetUniqueId(&id));
    for (int rank = 0; rank < size; ++rank)
      threads.emplace_back([&, rank] {
        Communicator comm;
        NCCL_OK(ncclCommInitRankScalable(&comm.handle, size, rank, idCount, ids.data(), nullptr));
        EXPECT_EQ(sumOver(comm.handle, 1), size);
        EXPECT_EQ(rankIn(comm.handle), rank);
      });
    for (auto& thread : threads) thread.join();
  }
  ncclComm_t comm = nullptr;
  EXPECT_EQ(ncclCommInitRankScalable(&comm, 2, 0, 3, ids.data(), nullptr), ncclInvalidArgument);
}

}  // namespace
}  // namespace falcon::abi
