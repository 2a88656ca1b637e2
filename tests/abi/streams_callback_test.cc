// Callbacks of host streams: in their turn, once each, with how it went.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <string>
#include <vector>

#include "abi/streams.h"

namespace falcon::abi {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

/// What callbacks were told, in their order. To be read after the stream was waited for.
struct Told {
  std::vector<ncclResult_t> results;
  std::vector<std::string> texts;
  std::vector<std::thread::id> threads;
  static void note(ncclResult_t result, void* context) {
    Told& told = *static_cast<Told*>(context);
    told.results.push_back(result);
    told.texts.emplace_back(result == ncclSuccess ? "" : ncclGetLastError(nullptr));
    told.threads.push_back(std::this_thread::get_id());
  }
};

TEST(StreamCallback, RunsOnceWhatWasQueuedBeforeIsDoneAndNotEarlier) {
  const Duo duo;
  const std::array<Stream, 2> streams;
  std::array<int, 2> values = {1, 2};
  std::atomic<int> seen{0};
  const auto look = [](ncclResult_t result, void* context) {
    EXPECT_EQ(result, ncclSuccess);
    static_cast<std::atomic<int>*>(context)->fetch_add(1);
  };
  NCCL_OK(ncclFalconStreamCallback(streams[0], look, &seen));
  NCCL_OK(synchronized(streams[0]));
  EXPECT_EQ(seen, 1) << "of a stream with nothing queued";
  NCCL_OK(ncclAllReduce(&values[0], &values[0], 1, ncclInt, ncclSum, duo[0], streams[0]));
  NCCL_OK(ncclFalconStreamCallback(streams[0], look, &seen));
  EXPECT_EQ(ncclFalconStreamQuery(streams[0]), ncclInProgress);
  EXPECT_EQ(seen, 1) << "the other rank has not come";
  NCCL_OK(ncclAllReduce(&values[1], &values[1], 1, ncclInt, ncclSum, duo[1], streams[1]));
  for (const Stream& stream : streams) NCCL_OK(synchronized(stream));
  EXPECT_EQ(seen, 2);
  EXPECT_THAT(values, Each(3));
}

TEST(StreamCallback, KeepsItsPlaceBetweenOperations) {
  withRanks(2, [&](int, ncclComm_t& comm) {
    const Stream stream;
    struct Seen {
      int value = 1;
      std::vector<int> values;
    } seen;
    const auto note = [](ncclResult_t, void* context) {
      Seen& now = *static_cast<Seen*>(context);
      now.values.push_back(now.value);
    };
    for (int i = 0; i < 4; ++i) {
      NCCL_OK(ncclAllReduce(&seen.value, &seen.value, 1, ncclInt, ncclSum, comm, stream));
      NCCL_OK(ncclFalconStreamCallback(stream, note, &seen));
    }
    NCCL_OK(synchronized(stream));
    EXPECT_THAT(seen.values, ElementsAre(2, 4, 8, 16));
  });
}

TEST(StreamCallback, IsToldTheFirstErrorSinceTheOneBefore) {
  Duo duo;
  const Communicator other{alone()};
  const Stream stream;
  int value = 1;
  Told told;
  NCCL_OK(ncclAllReduce(&value, &value, 1, ncclInt, ncclSum, duo[0], stream));
  NCCL_OK(ncclFalconStreamCallback(stream, Told::note, &told));
  NCCL_OK(ncclAllReduce(&value, &value, 1, ncclInt, ncclSum, other.handle, stream));
  NCCL_OK(ncclFalconStreamCallback(stream, Told::note, &told));
  NCCL_OK(ncclCommAbort(duo.take(1)));
  EXPECT_EQ(synchronized(stream), ncclRemoteError) << "told to both";
  EXPECT_THAT(told.results, ElementsAre(ncclRemoteError, ncclSuccess));
  EXPECT_THAT(told.texts.front(), HasSubstr("rank 1"));
  NCCL_OK(synchronized(stream));
}

TEST(StreamCallback, RunsOnTheStreamsThreadAndMayUseTheLibrary) {
  const Communicator comm{alone()};
  const Stream stream;
  struct Chain {
    ncclComm_t comm;
    ncclFalconStream_t stream;
    int value = 5, sum = 0;
    ncclResult_t queued = ncclInternalError, waited = ncclSuccess;
    Told told;
  } chain{comm.handle, stream};
  const auto next = [](ncclResult_t, void* context) {
    Chain& own = *static_cast<Chain*>(context);
    own.queued = ncclAllReduce(&own.value, &own.sum, 1, ncclInt, ncclSum, own.comm, own.stream);
    own.waited = ncclFalconStreamSynchronize(own.stream);
    ncclFalconStreamCallback(own.stream, Told::note, &own.told);
  };
  NCCL_OK(ncclFalconStreamCallback(stream, next, &chain));
  NCCL_OK(ncclFalconStreamCallback(stream, Told::note, &chain.told));
  NCCL_OK(synchronized(stream));  // the first two
  NCCL_OK(synchronized(stream));  // and what they queued
  EXPECT_EQ(chain.queued, ncclSuccess);
  EXPECT_EQ(chain.waited, ncclInvalidUsage) << "it would wait for itself";
  EXPECT_EQ(chain.sum, 5);
  ASSERT_EQ(chain.told.threads.size(), 2u);
  EXPECT_EQ(chain.told.threads[0], chain.told.threads[1]);
  EXPECT_NE(chain.told.threads[0], std::this_thread::get_id());
}

TEST(StreamCallback, OfNoStreamRunsAtOnce) {
  Told told;
  NCCL_OK(ncclFalconStreamCallback(nullptr, Told::note, &told));
  EXPECT_THAT(told.results, ElementsAre(ncclSuccess));
  EXPECT_EQ(told.threads.front(), std::this_thread::get_id());
}

TEST(StreamCallback, RunsThoughTheStreamIsDestroyed) {
  const Duo duo;
  std::promise<ncclResult_t> outcome;
  const auto keep = [](ncclResult_t result, void* context) {
    static_cast<std::promise<ncclResult_t>*>(context)->set_value(result);
  };
  ncclFalconStream_t stream = nullptr;
  NCCL_OK(ncclFalconStreamCreate(&stream));
  const Stream second;
  std::array<int, 2> values = {1, 2};
  NCCL_OK(ncclAllReduce(&values[0], &values[0], 1, ncclInt, ncclSum, duo[0], stream));
  NCCL_OK(ncclFalconStreamCallback(stream, keep, &outcome));
  NCCL_OK(ncclFalconStreamDestroy(stream));
  NCCL_OK(ncclAllReduce(&values[1], &values[1], 1, ncclInt, ncclSum, duo[1], second));
  EXPECT_EQ(outcome.get_future().get(), ncclSuccess);
  NCCL_OK(synchronized(second));
}

TEST(StreamCallback, RefusesWhatCannotBe) {
  Told told;
  const Stream stream;
  EXPECT_EQ(ncclFalconStreamCallback(stream, nullptr, &told), ncclInvalidArgument);
  EXPECT_EQ(ncclFalconStreamCallback(nullptr, nullptr, &told), ncclInvalidArgument);
  int elsewhere = 0;
  EXPECT_EQ(ncclFalconStreamCallback(reinterpret_cast<ncclFalconStream_t>(&elsewhere), Told::note, &told),
            ncclInvalidArgument);
  EXPECT_THAT(ncclGetLastError(nullptr), HasSubstr("no host stream"));
  ncclFalconStream_t destroyed = nullptr;
  NCCL_OK(ncclFalconStreamCreate(&destroyed));
  NCCL_OK(ncclFalconStreamDestroy(destroyed));
  EXPECT_EQ(ncclFalconStreamCallback(destroyed, Told::note, &told), ncclInvalidArgument);
  EXPECT_THAT(ncclGetLastError(nullptr), HasSubstr("was destroyed"));
  EXPECT_TRUE(told.results.empty());
}

}  // namespace
}  // namespace falcon::abi
