// Calls on host streams: they return at once, keep their order, and give what they give without a stream.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "abi/streams.h"

namespace falcon::abi {
namespace {

using testing::Each;

TEST(Streams, AnOperationIsInProgressUntilItsPartnerComes) {
  const Duo duo;
  const Stream first, second;
  std::array<float, 2> values = {1, 2};
  NCCL_OK(ncclAllReduce(&values[0], &values[0], 1, ncclFloat, ncclSum, duo[0], first));
  EXPECT_EQ(ncclFalconStreamQuery(first), ncclInProgress);
  EXPECT_EQ(ncclFalconStreamQuery(second), ncclSuccess);
  NCCL_OK(ncclAllReduce(&values[1], &values[1], 1, ncclFloat, ncclSum, duo[1], second));
  NCCL_OK(synchronized(first));
  NCCL_OK(synchronized(second));
  EXPECT_THAT(values, Each(3));
  EXPECT_EQ(ncclFalconStreamQuery(first), ncclSuccess);
}

// All of them, queued without waiting in between; each has its own answer.
TEST(Streams, EveryOperationGivesWhatItGivesWithoutAStream) {
  constexpr int ranks = 3;
  constexpr size_t count = 1000;
  withRanks(ranks, [&](int rank, ncclComm_t& comm) {
    const auto answers = [&](ncclFalconStream_t stream) {
      std::vector<int> mine(count), all(ranks * count);
      for (size_t i = 0; i < count; ++i) mine[i] = rank * 7 + static_cast<int>(i);
      for (size_t i = 0; i < ranks * count; ++i) all[i] = rank * 5 + static_cast<int>(i);
      std::vector<std::vector<int>> out(9, std::vector<int>(ranks * count, -1));
      const int next = (rank + 1) % ranks, previous = (rank + ranks - 1) % ranks;
      const ncclResult_t results[] = {
          ncclAllReduce(mine.data(), out[0].data(), count, ncclInt, ncclSum, comm, stream),
          ncclBroadcast(mine.data(), out[1].data(), count, ncclInt, 1, comm, stream),
          ncclReduce(mine.data(), out[2].data(), count, ncclInt, ncclMax, 2, comm, stream),
          ncclAllGather(mine.data(), out[3].data(), count, ncclInt, comm, stream),
          ncclReduceScatter(all.data(), out[4].data(), count, ncclInt, ncclSum, comm, stream),
          ncclAlltoAll(all.data(), out[5].data(), count, ncclInt, comm, stream),
          ncclGather(mine.data(), out[6].data(), count, ncclInt, 0, comm, stream),
          ncclScatter(all.data(), out[7].data(), count, ncclInt, 1, comm, stream),
          ncclGroupStart(),
          ncclSend(mine.data(), count, ncclInt, next, comm, stream),
          ncclRecv(out[8].data(), count, ncclInt, previous, comm, stream),
          ncclGroupEnd(),
          synchronized(stream)};
      EXPECT_THAT(results, Each(ncclSuccess)) << ncclGetLastError(nullptr);
      return out;
    };
    const Stream stream;
    EXPECT_EQ(answers(stream), answers(noStream)) << "rank " << rank;
  });
}

TEST(Streams, OperationsOfACommunicatorKeepTheirOrderOverStreamsAndWithoutOne) {
  constexpr size_t count = 50'000;
  constexpr int rounds = 20;
  withRanks(2, [&](int, ncclComm_t& comm) {
    const Stream first, second;
    std::vector<int> a(count, 1), b(count);
    int factor = 1;
    for (int round = 0; round < rounds; ++round) {
      // Each reads what the one before has written.
      NCCL_OK(ncclAllReduce(a.data(), b.data(), count, ncclInt, ncclSum, comm, first));
      NCCL_OK(ncclAllReduce(b.data(), a.data(), count, ncclInt, ncclMax, comm, second));
      factor *= 2;
      if (round % 5 != 4) continue;
      NCCL_OK(ncclAllReduce(a.data(), a.data(), count, ncclInt, ncclMin, comm, noStream));
      ASSERT_THAT(a, Each(factor)) << "round " << round;
    }
    NCCL_OK(synchronized(second));
    NCCL_OK(synchronized(first));
    EXPECT_THAT(a, Each(factor));
  });
}

TEST(Streams, DifferentCommunicatorsOnDifferentStreamsRunSideBySide) {
  const Duo stuck, free;
  std::array<Stream, 2> stuckOn, freeOn;
  std::array<int, 2> a = {1, 2}, b = {3, 4};
  NCCL_OK(ncclAllReduce(&a[0], &a[0], 1, ncclInt, ncclSum, stuck[0], stuckOn[0]));
  for (const int rank : {0, 1})
    NCCL_OK(ncclAllReduce(&b[rank], &b[rank], 1, ncclInt, ncclSum, free[rank], freeOn[rank]));
  for (const Stream& stream : freeOn) NCCL_OK(synchronized(stream));
  EXPECT_THAT(b, Each(7));
  EXPECT_EQ(ncclFalconStreamQuery(stuckOn[0]), ncclInProgress);
  NCCL_OK(ncclAllReduce(&a[1], &a[1], 1, ncclInt, ncclSum, stuck[1], stuckOn[1]));
  for (const Stream& stream : stuckOn) NCCL_OK(synchronized(stream));
  EXPECT_THAT(a, Each(3));
}

TEST(Streams, AGroupIsOneOperationOnAllItsStreams) {
  constexpr size_t count = 300'000;  // more than connections buffer
  const Duo duo;
  const Stream sends, receives, others;
  std::vector<int> sent(count, 5), received(count);
  NCCL_OK(ncclGroupStart());
  NCCL_OK(ncclSend(sent.data(), count, ncclInt, 1, duo[0], sends));
  NCCL_OK(ncclRecv(received.data(), count, ncclInt, 1, duo[0], receives));
  NCCL_OK(ncclGroupEnd());
  EXPECT_EQ(ncclFalconStreamQuery(sends), ncclInProgress);
  EXPECT_EQ(ncclFalconStreamQuery(receives), ncclInProgress);
  // The other rank: both within one group on one stream, in the other order.
  std::vector<int> others1(count, 6), others2(count);
  NCCL_OK(ncclGroupStart());
  NCCL_OK(ncclRecv(others2.data(), count, ncclInt, 0, duo[1], others));
  NCCL_OK(ncclSend(others1.data(), count, ncclInt, 0, duo[1], others));
  NCCL_OK(ncclGroupEnd());
  for (const auto stream : {sends.handle, receives.handle, others.handle}) NCCL_OK(synchronized(stream));
  EXPECT_EQ(received, others1);
  EXPECT_EQ(others2, sent);
}

TEST(Streams, AGroupWithCallsWithoutAStreamWaitsForAllOfIt) {
  const Duo duo;
  const Stream stream;
  std::array<int, 2> a = {1, 2};
  NCCL_OK(ncclGroupStart());
  NCCL_OK(ncclAllReduce(&a[0], &a[0], 1, ncclInt, ncclSum, duo[0], stream));
  NCCL_OK(ncclAllReduce(&a[1], &a[1], 1, ncclInt, ncclSum, duo[1], noStream));
  NCCL_OK(ncclGroupEnd());
  EXPECT_THAT(a, Each(3));
  EXPECT_EQ(ncclFalconStreamQuery(stream), ncclSuccess);
}

TEST(Streams, ADeviceScalarIsReadWhenTheOperationRuns) {
  const Duo duo;
  std::array<Stream, 2> streams;
  std::array<int, 2> before = {1, 1}, values = {1, 1}, scalars = {10, 20};
  const auto queue = [&](int rank) {
    ncclRedOp_t scaled;
    NCCL_OK(ncclRedOpCreatePreMulSum(&scaled, &scalars[rank], ncclInt, ncclScalarDevice, duo[rank]));
    NCCL_OK(ncclAllReduce(&before[rank], &before[rank], 1, ncclInt, ncclSum, duo[rank], streams[rank]));
    NCCL_OK(ncclAllReduce(&values[rank], &values[rank], 1, ncclInt, scaled, duo[rank], streams[rank]));
    NCCL_OK(ncclRedOpDestroy(scaled, duo[rank]));
  };
  queue(0);
  scalars[0] = 300;  // the operation before it waits for rank 1, so this one has not begun
  queue(1);
  for (const Stream& stream : streams) NCCL_OK(synchronized(stream));
  EXPECT_THAT(values, Each(320));
}

TEST(Streams, NonblockingCommunicatorsStayReady) {
  ncclUniqueId id;
  NCCL_OK(ncclGetUniqueId(&id));
  std::array<Communicator, 2> comms;
  for (const int rank : {0, 1}) {
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    ASSERT_EQ(ncclInProgress, ncclCommInitRankConfig(&comms[rank].handle, 2, id, rank, &config));
  }
  for (const Communicator& comm : comms) ASSERT_EQ(outcomeOf(comm.handle), ncclSuccess);
  std::array<Stream, 2> streams;
  std::array<int, 2> a = {1, 2}, b = {10, 20};
  for (const int rank : {0, 1}) {
    NCCL_OK(ncclAllReduce(&a[rank], &a[rank], 1, ncclInt, ncclSum, comms[rank].handle, streams[rank]));
    EXPECT_EQ(ncclAllReduce(&b[rank], &b[rank], 1, ncclInt, ncclSum, comms[rank].handle, noStream), ncclInProgress);
  }
  for (const int rank : {0, 1}) EXPECT_EQ(outcomeOf(comms[rank].handle), ncclSuccess);
  EXPECT_THAT(b, Each(30));
  EXPECT_THAT(a, Each(3));
  for (const Stream& stream : streams) NCCL_OK(synchronized(stream));
}

// Streams of several threads, used at random: everything ends, and every sum is right.
TEST(Streams, ManyThreadsMayUseThemAtOnce) {
  constexpr int threads = 4, rounds = 100;
  withRanks(2, [&](int rank, ncclComm_t& comm) {
    std::vector<ncclComm_t> comms(threads);
    for (ncclComm_t& each : comms) NCCL_OK(ncclCommSplit(comm, 0, rank, &each, nullptr));
    std::vector<std::thread> users;
    for (int thread = 0; thread < threads; ++thread)
      users.emplace_back([&, thread] {
        const Stream own;
        std::vector<int> values(rounds, rank + thread);
        for (int round = 0; round < rounds; ++round) {
          NCCL_OK(ncclAllReduce(&values[round], &values[round], 1, ncclInt, ncclSum, comms[thread], own));
          if (round % 10 == thread) {
            NCCL_OK(synchronized(own));
          }
        }
        NCCL_OK(synchronized(own));
        EXPECT_THAT(values, Each(2 * thread + 1));
      });
    for (auto& user : users) user.join();
    for (ncclComm_t each : comms) NCCL_OK(ncclCommDestroy(each));
  });
}

}  // namespace
}  // namespace falcon::abi
