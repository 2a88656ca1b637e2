// Host streams and communicators that end early, fail, or were never there.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "abi/streams.h"

namespace falcon::abi {
namespace {

using testing::Each;
using testing::HasSubstr;

ncclResult_t sum(std::array<int, 2>& values, int rank, ncclComm_t comm, ncclFalconStream_t stream) {
  return ncclAllReduce(&values[rank], &values[rank], 1, ncclInt, ncclSum, comm, stream);
}

TEST(StreamErrors, OfArgumentsAreToldByTheCallAndQueueNothing) {
  const Communicator comm{alone()};
  const Stream stream;
  int value = 1;
  EXPECT_EQ(ncclAllReduce(nullptr, &value, 1, ncclInt, ncclSum, comm.handle, stream), ncclInvalidArgument);
  EXPECT_EQ(ncclBroadcast(&value, &value, 1, ncclInt, 3, comm.handle, stream), ncclInvalidArgument);
  // Without its counterpart in the same group.
  EXPECT_EQ(ncclSend(&value, 1, ncclInt, 0, comm.handle, stream), ncclInvalidUsage);
  EXPECT_EQ(ncclFalconStreamQuery(stream), ncclSuccess);
  NCCL_OK(synchronized(stream));
  EXPECT_EQ(ncclFalconStreamCreate(nullptr), ncclInvalidArgument);
}

TEST(StreamErrors, WhatIsNoHostStreamIsRefusedAndNotLookedInto) {
  const Communicator comm{alone()};
  int value = 1, elsewhere = 0;
  const auto refused = [&](ncclFalconStream_t stream, const char* why) {
    EXPECT_EQ(ncclAllReduce(&value, &value, 1, ncclInt, ncclSum, comm.handle, stream), ncclInvalidArgument);
    EXPECT_THAT(ncclGetLastError(nullptr), HasSubstr(why));
    for (const auto function : {ncclFalconStreamQuery, ncclFalconStreamSynchronize, ncclFalconStreamDestroy}) {
      EXPECT_EQ(function(stream), ncclInvalidArgument);
      EXPECT_THAT(ncclGetLastError(nullptr), HasSubstr(why));
    }
  };
  refused(reinterpret_cast<ncclFalconStream_t>(std::uintptr_t{0x11}), "no host stream");
  refused(reinterpret_cast<ncclFalconStream_t>(&elsewhere), "no host stream");
  ncclFalconStream_t destroyed = nullptr;
  NCCL_OK(ncclFalconStreamCreate(&destroyed));
  NCCL_OK(ncclFalconStreamDestroy(destroyed));
  const Stream another;  // does not get the same address
  refused(destroyed, "was destroyed");
  for (const auto function : {ncclFalconStreamQuery, ncclFalconStreamSynchronize, ncclFalconStreamDestroy})
    EXPECT_EQ(function(nullptr), ncclSuccess);
}

TEST(StreamErrors, OfRunningAreKeptUntilTheyAreTold) {
  Duo duo;
  std::array<Stream, 2> streams;
  std::array<int, 2> values = {1, 2};
  for (int i = 0; i < 3; ++i) NCCL_OK(sum(values, 0, duo[0], streams[0]));
  NCCL_OK(ncclCommAbort(duo.take(1)));
  // All three fail, whether they had begun or not; who queues another one may be told so at once.
  while (ncclFalconStreamQuery(streams[0]) == ncclInProgress) std::this_thread::yield();
  EXPECT_EQ(ncclFalconStreamQuery(streams[0]), ncclRemoteError);
  EXPECT_EQ(synchronized(streams[0]), ncclRemoteError);
  EXPECT_THAT(ncclGetLastError(nullptr), HasSubstr("rank 1"));  // aborted, or has left
  ncclResult_t state = ncclSuccess;
  NCCL_OK(ncclCommGetAsyncError(duo[0], &state));
  EXPECT_EQ(state, ncclRemoteError);
  EXPECT_EQ(sum(values, 0, duo[0], streams[0]), ncclRemoteError);
  NCCL_OK(synchronized(streams[0]));
  // The stream is well: it serves another communicator.
  const Communicator other{alone()};
  NCCL_OK(ncclAllReduce(&values[0], &values[0], 1, ncclInt, ncclSum, other.handle, streams[0]));
  NCCL_OK(synchronized(streams[0]));
}

TEST(StreamLife, AbortAndRevokeEndWhatIsQueued) {
  for (const bool abort : {true, false}) {
    Duo duo;
    const Stream stream;
    std::array<int, 2> values = {1, 2};
    for (int i = 0; i < 3; ++i) NCCL_OK(sum(values, 0, duo[0], stream));
    if (abort) {
      NCCL_OK(ncclCommAbort(duo.take(0)));
    } else {
      NCCL_OK(ncclCommRevoke(duo[0], NCCL_REVOKE_DEFAULT));
    }
    EXPECT_EQ(synchronized(stream), abort ? ncclRemoteError : ncclInvalidUsage);
  }
}

TEST(StreamLife, FinalizeAndSplitWaitForWhatIsQueued) {
  withRanks(2, [&](int rank, ncclComm_t& comm) {
    const Stream stream;
    std::vector<int> values(100'000, 1);
    const auto queue = [&] {
      for (int i = 0; i < 3; ++i)
        NCCL_OK(ncclAllReduce(values.data(), values.data(), values.size(), ncclInt, ncclSum, comm, stream));
    };
    queue();
    Communicator child;
    NCCL_OK(ncclCommSplit(comm, 0, rank, &child.handle, nullptr));
    EXPECT_EQ(ncclFalconStreamQuery(stream), ncclSuccess);
    EXPECT_THAT(values, Each(8));
    queue();
    NCCL_OK(ncclCommFinalize(comm));
    EXPECT_EQ(ncclFalconStreamQuery(stream), ncclSuccess);
    EXPECT_THAT(values, Each(64));
  });
}

TEST(StreamLife, WhatIsQueuedIsDoneThoughCommunicatorOrStreamIsDestroyed) {
  for (const bool destroyStream : {true, false}) {
    Duo duo;
    ncclFalconStream_t first = nullptr;
    NCCL_OK(ncclFalconStreamCreate(&first));
    const Stream second;
    std::array<int, 2> values = {1, 2}, more = {10, 20};
    NCCL_OK(sum(values, 0, duo[0], first));
    NCCL_OK(sum(more, 0, duo[0], first));
    if (destroyStream) {
      NCCL_OK(ncclFalconStreamDestroy(first));
    } else {
      NCCL_OK(ncclCommDestroy(duo.take(0)));
    }
    NCCL_OK(sum(values, 1, duo[1], second));
    NCCL_OK(sum(more, 1, duo[1], second));
    NCCL_OK(synchronized(second));
    EXPECT_EQ(values[1], 3);
    EXPECT_EQ(more[1], 30);
    if (destroyStream) {
      // Its order is still the communicator's: a call without a stream waits for it.
      NCCL_OK(ncclGroupStart());
      for (const int rank : {0, 1}) NCCL_OK(sum(values, rank, duo[rank], noStream));
      NCCL_OK(ncclGroupEnd());
    } else {
      NCCL_OK(synchronized(first));
      NCCL_OK(ncclFalconStreamDestroy(first));
    }
    EXPECT_EQ(more[0], 30);
  }
}

TEST(StreamLife, AStreamThatIsDestroyedWithinAGroupEndsTheGroupWithAnError) {
  const Communicator comm{alone()};
  ncclFalconStream_t stream = nullptr;
  NCCL_OK(ncclFalconStreamCreate(&stream));
  int value = 1;
  NCCL_OK(ncclGroupStart());
  NCCL_OK(ncclAllReduce(&value, &value, 1, ncclInt, ncclSum, comm.handle, stream));
  NCCL_OK(ncclFalconStreamDestroy(stream));
  EXPECT_EQ(ncclGroupEnd(), ncclInvalidArgument);
  EXPECT_THAT(ncclGetLastError(nullptr), HasSubstr("destroyed"));
}

/// Threads of streams in this process.
int streamThreads() {
  int count = 0;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::string name;
    std::getline(std::ifstream(task.path() / "comm"), name);
    count += name == "nccl-falcon-str" ? 1 : 0;
  }
  return count;
}

/// A thread that has been joined may be in /proc for a moment.
bool eventuallyStreamThreads(int count) {
  for (int attempt = 0; attempt < 3000 && streamThreads() != count; ++attempt)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  return streamThreads() == count;
}

TEST(StreamLife, AThreadForEachStreamAndNoneWithout) {
  // Streams that other tests destroyed at work may just be ending.
  ASSERT_TRUE(eventuallyStreamThreads(0));
  const Communicator comm{alone()};
  int value = 1;
  NCCL_OK(ncclAllReduce(&value, &value, 1, ncclInt, ncclSum, comm.handle, noStream));
  EXPECT_EQ(streamThreads(), 0);
  for (int round = 0; round < 20; ++round) {
    const Stream first, second;
    for (const auto stream : {first.handle, second.handle}) {
      NCCL_OK(ncclAllReduce(&value, &value, 1, ncclInt, ncclSum, comm.handle, stream));
      NCCL_OK(synchronized(stream));
    }
    EXPECT_TRUE(eventuallyStreamThreads(2)) << streamThreads();
  }
  EXPECT_TRUE(eventuallyStreamThreads(0)) << streamThreads();
}

TEST(StreamLife, AForkedChildMakesItsOwn) {
  const Communicator parents{alone()};
  const Stream inherited;
  int value = 1;
  NCCL_OK(ncclAllReduce(&value, &value, 1, ncclInt, ncclSum, parents.handle, inherited));
  NCCL_OK(synchronized(inherited));
  inFreshChild({}, [&] {
    EXPECT_EQ(ncclFalconStreamQuery(inherited), ncclInvalidArgument);
    EXPECT_THAT(ncclGetLastError(nullptr), HasSubstr("forked child"));
    const Communicator own{alone()};
    const Stream stream;
    NCCL_OK(ncclAllReduce(&value, &value, 1, ncclInt, ncclSum, own.handle, stream));
    NCCL_OK(synchronized(stream));
  });
}

}  // namespace
}  // namespace falcon::abi
