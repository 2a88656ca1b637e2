// Buffers: NULL where this rank's is not used, in place, of no elements; on one rank and on several.
#include <gtest/gtest.h>

#include "abi/ranks.h"

namespace falcon::abi {
namespace {

constexpr size_t count = 1000;

class Buffers : public testing::TestWithParam<int> {
 protected:
  int ranks() const { return GetParam(); }
};

TEST_P(Buffers, UnusedOnesMayBeNull) {
  withRanks(ranks(), [&](int rank, ncclComm_t comm) {
    for (int root = 0; root < ranks(); ++root) {
      const bool isRoot = rank == root;
      const auto mine = numbers(count, rank * 10'000);
      auto all = numbers(count * ranks(), 0);
      std::vector<int> out(count, -1);
      NCCL_OK(ncclBroadcast(isRoot ? mine.data() : nullptr, out.data(), count, ncclInt, root, comm, noStream));
      EXPECT_EQ(out, numbers(count, root * 10'000));
      NCCL_OK(ncclScatter(isRoot ? all.data() : nullptr, out.data(), count, ncclInt, root, comm, noStream));
      EXPECT_EQ(out, numbers(count, rank * static_cast<int>(count)));
      NCCL_OK(ncclReduce(mine.data(), isRoot ? out.data() : nullptr, count, ncclInt, ncclMax, root, comm, noStream));
      if (isRoot) {
        EXPECT_EQ(out, numbers(count, (ranks() - 1) * 10'000));
      }
      NCCL_OK(ncclGather(mine.data(), isRoot ? all.data() : nullptr, count, ncclInt, root, comm, noStream));
      for (int other = 0; isRoot && other < ranks(); ++other) EXPECT_EQ(all[other * count + 3], other * 10'000 + 3);
    }
  });
}

TEST_P(Buffers, UsedOnesMayNot) {
  withRanks(ranks(), [&](int rank, ncclComm_t comm) {
    auto values = numbers(count * ranks(), 0);
    int* const there = values.data();
    // Rooted at oneself, so that every rank is the one that uses the buffer.
    EXPECT_EQ(ncclBroadcast(nullptr, there, count, ncclInt, rank, comm, noStream), ncclInvalidArgument);
    EXPECT_EQ(ncclBcast(nullptr, count, ncclInt, rank, comm, noStream), ncclInvalidArgument);
    EXPECT_EQ(ncclScatter(nullptr, there, count, ncclInt, rank, comm, noStream), ncclInvalidArgument);
    EXPECT_EQ(ncclReduce(there, nullptr, count, ncclInt, ncclSum, rank, comm, noStream), ncclInvalidArgument);
    EXPECT_EQ(ncclGather(there, nullptr, count, ncclInt, rank, comm, noStream), ncclInvalidArgument);
    const int other = (rank + 1) % ranks();
    EXPECT_EQ(ncclBroadcast(there, nullptr, count, ncclInt, other, comm, noStream), ncclInvalidArgument);
    EXPECT_EQ(ncclScatter(there, nullptr, count, ncclInt, other, comm, noStream), ncclInvalidArgument);
    EXPECT_EQ(ncclReduce(nullptr, there, count, ncclInt, ncclSum, other, comm, noStream), ncclInvalidArgument);
    EXPECT_EQ(ncclGather(nullptr, there, count, ncclInt, other, comm, noStream), ncclInvalidArgument);
    for (int side = 0; side < 2; ++side) {
      const int* const send = side == 0 ? nullptr : there;
      int* const receive = side == 0 ? there : nullptr;
      EXPECT_EQ(ncclAllReduce(send, receive, count, ncclInt, ncclSum, comm, noStream), ncclInvalidArgument);
      EXPECT_EQ(ncclAllGather(send, receive, count, ncclInt, comm, noStream), ncclInvalidArgument);
      EXPECT_EQ(ncclReduceScatter(send, receive, count, ncclInt, ncclSum, comm, noStream), ncclInvalidArgument);
      EXPECT_EQ(ncclAlltoAll(send, receive, count, ncclInt, comm, noStream), ncclInvalidArgument);
    }
    EXPECT_EQ(ncclSend(nullptr, count, ncclInt, other, comm, noStream), ncclInvalidArgument);
    EXPECT_EQ(ncclRecv(nullptr, count, ncclInt, other, comm, noStream), ncclInvalidArgument);
  });
}

TEST_P(Buffers, InPlaceFormsAreRight) {
  withRanks(ranks(), [&](int rank, ncclComm_t comm) {
    const int root = ranks() - 1;
    const auto block = [&](std::vector<int>& all, int of) { return all.data() + static_cast<size_t>(of) * count; };
    auto values = numbers(count, rank);
    NCCL_OK(ncclAllReduce(values.data(), values.data(), count, ncclInt, ncclMax, comm, noStream));
    EXPECT_EQ(values, numbers(count, ranks() - 1));
    values = numbers(count, rank);
    NCCL_OK(ncclReduce(values.data(), values.data(), count, ncclInt, ncclMax, root, comm, noStream));
    EXPECT_EQ(values, numbers(count, rank == root ? ranks() - 1 : rank)) << "off the root nothing is written";
    values = numbers(count, rank);
    NCCL_OK(ncclBroadcast(values.data(), values.data(), count, ncclInt, root, comm, noStream));
    EXPECT_EQ(values, numbers(count, root));
    values = numbers(count, rank);
    NCCL_OK(ncclBcast(values.data(), count, ncclInt, root, comm, noStream));
    EXPECT_EQ(values, numbers(count, root));

    std::vector<int> all(count * ranks(), -1);
    const auto mine = numbers(count, rank * static_cast<int>(count));
    std::copy(mine.begin(), mine.end(), block(all, rank));
    NCCL_OK(ncclAllGather(block(all, rank), all.data(), count, ncclInt, comm, noStream));
    EXPECT_EQ(all, numbers(count * ranks(), 0));
    // The receive buffer of Gather is the root's only.
    std::fill(all.begin(), all.end(), -1);
    std::copy(mine.begin(), mine.end(), block(all, rank));
    NCCL_OK(ncclGather(block(all, rank), all.data(), count, ncclInt, root, comm, noStream));
    if (rank == root) {
      EXPECT_EQ(all, numbers(count * ranks(), 0));
    }
    all = numbers(count * ranks(), 0);
    NCCL_OK(ncclScatter(all.data(), block(all, rank), count, ncclInt, root, comm, noStream));
    EXPECT_EQ(all, numbers(count * ranks(), 0));
    all = numbers(count * ranks(), 0);
    NCCL_OK(ncclReduceScatter(all.data(), block(all, rank), count, ncclInt, ncclMin, comm, noStream));
    EXPECT_EQ(all, numbers(count * ranks(), 0));
  });
}

TEST_P(Buffers, NothingIsMovedWhereThereIsNothing) {
  withRanks(ranks(), [&](int rank, ncclComm_t comm) {
    const auto everything = [&](int* there) {
      NCCL_OK(ncclAllReduce(there, there, 0, ncclInt, ncclSum, comm, noStream));
      NCCL_OK(ncclBroadcast(there, there, 0, ncclInt, 0, comm, noStream));
      NCCL_OK(ncclBcast(there, 0, ncclInt, 0, comm, noStream));
      NCCL_OK(ncclReduce(there, there, 0, ncclInt, ncclSum, 0, comm, noStream));
      NCCL_OK(ncclAllGather(there, there, 0, ncclInt, comm, noStream));
      NCCL_OK(ncclReduceScatter(there, there, 0, ncclInt, ncclSum, comm, noStream));
      NCCL_OK(ncclAlltoAll(there, there, 0, ncclInt, comm, noStream));
      NCCL_OK(ncclGather(there, there, 0, ncclInt, 0, comm, noStream));
      NCCL_OK(ncclScatter(there, there, 0, ncclInt, 0, comm, noStream));
      const int next = (rank + 1) % ranks(), previous = (rank + ranks() - 1) % ranks();
      NCCL_OK(ncclGroupStart());
      NCCL_OK(ncclSend(there, 0, ncclInt, next, comm, noStream));
      NCCL_OK(ncclRecv(there, 0, ncclInt, previous, comm, noStream));
      NCCL_OK(ncclGroupEnd());
    };
    int value = 7;
    everything(&value);
    EXPECT_EQ(value, 7);
    everything(nullptr);
    // Empty calls count: the next ones still fit together.
    NCCL_OK(ncclAllReduce(&value, &value, 1, ncclInt, ncclSum, comm, noStream));
    EXPECT_EQ(value, 7 * ranks());
  });
}

TEST_P(Buffers, EveryOperationMovesWhatItSays) {
  withRanks(ranks(), [&](int rank, ncclComm_t comm) {
    const int size = ranks();
    const auto mine = numbers(count * size, rank * 1'000'000);
    std::vector<int> out(count * size, -1);
    NCCL_OK(ncclAlltoAll(mine.data(), out.data(), count, ncclInt, comm, noStream));
    for (int other = 0; other < size; ++other)
      EXPECT_EQ(out[other * count + 5], other * 1'000'000 + rank * static_cast<int>(count) + 5);
    NCCL_OK(ncclAllGather(mine.data(), out.data(), count, ncclInt, comm, noStream));
    for (int other = 0; other < size; ++other) EXPECT_EQ(out[other * count + 5], other * 1'000'000 + 5);
    NCCL_OK(ncclReduceScatter(mine.data(), out.data(), count, ncclInt, ncclMax, comm, noStream));
    EXPECT_EQ(out[5], (size - 1) * 1'000'000 + rank * static_cast<int>(count) + 5);
    NCCL_OK(ncclAllReduce(mine.data(), out.data(), count * size, ncclInt, ncclMin, comm, noStream));
    EXPECT_EQ(out, numbers(count * size, 0));
    const int next = (rank + 1) % size, previous = (rank + size - 1) % size;
    NCCL_OK(ncclGroupStart());
    NCCL_OK(ncclRecv(out.data(), count, ncclInt, previous, comm, noStream));
    NCCL_OK(ncclSend(mine.data(), count, ncclInt, next, comm, noStream));
    NCCL_OK(ncclGroupEnd());
    EXPECT_EQ(out[5], previous * 1'000'000 + 5);
  });
}

INSTANTIATE_TEST_SUITE_P(Ranks, Buffers, testing::Values(1, 2, 3));

TEST(LastError, IsThereWithoutACommunicatorAndOfTheLastCall) {
  ASSERT_NE(ncclGetLastError(nullptr), nullptr);
  int value = 0;
  EXPECT_EQ(ncclCommCount(nullptr, &value), ncclInvalidArgument);
  EXPECT_NE(std::string(ncclGetLastError(nullptr)).find("ncclCommCount"), std::string::npos);
  EXPECT_EQ(ncclGroupEnd(), ncclInvalidUsage);
  EXPECT_NE(std::string(ncclGetLastError(nullptr)).find("ncclGroupEnd"), std::string::npos);
  EXPECT_EQ(ncclGetLastError(nullptr), pncclGetLastError(nullptr));
  // The calling thread's own, or the process's last: never null, and harmless on a thread that did nothing wrong.
  std::thread([] { EXPECT_NE(ncclGetLastError(nullptr), nullptr); }).join();
}

}  // namespace
}  // namespace falcon::abi
