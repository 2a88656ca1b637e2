// ncclPutSignal, ncclSignal and ncclWaitSignal on host memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "abi/ranks.h"
#include "abi/streams.h"

namespace falcon::abi {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

/// Memory that a communicator knows as a window.
class Window {
 public:
  Window(ncclComm_t comm, size_t ints) : comm_(comm), bytes_(ints * sizeof(int)) {
    void* memory = nullptr;
    EXPECT_EQ(ncclSuccess, ncclMemAlloc(&memory, bytes_)) << ncclGetLastError(nullptr);
    values_ = {static_cast<int*>(memory), ints};
    std::fill(values_.begin(), values_.end(), -1);
    EXPECT_EQ(ncclSuccess, ncclCommWindowRegister(comm, memory, bytes_, &handle_, NCCL_WIN_COLL_SYMMETRIC))
        << ncclGetLastError(nullptr);
  }
  Window(const Window&) = delete;
  ~Window() {
    giveBack();
    EXPECT_EQ(ncclSuccess, ncclMemFree(values_.data()));
  }
  void giveBack() {
    // NULL is fine: giving back nothing succeeds.
    EXPECT_EQ(ncclSuccess, ncclCommWindowDeregister(comm_, std::exchange(handle_, nullptr)));
  }
  ncclWindow_t handle() const { return handle_; }
  std::span<int> values() const { return values_; }

 private:
  const ncclComm_t comm_;
  const size_t bytes_;
  std::span<int> values_;
  ncclWindow_t handle_ = nullptr;
};

ncclResult_t put(const std::vector<int>& values, int peer, const Window& window, size_t firstInt, ncclComm_t comm,
                 cudaStream_t stream = noStream, int index = 0, int context = 0) {
  return ncclPutSignal(values.data(), values.size(), ncclInt, peer, window.handle(), firstInt * sizeof(int), index,
                       context, 0, comm, stream);
}

ncclResult_t waitFor(int count, int peer, ncclComm_t comm, cudaStream_t stream = noStream, int index = 0,
                     int context = 0) {
  ncclWaitSignalDesc_t signal{count, peer, index, context};
  return ncclWaitSignal(1, &signal, comm, stream);
}

enum class Way { direct, connected };

/// Straight into each other's memory, or over connections.
class Ways : public testing::TestWithParam<Way> {
 protected:
  Ways() { choose(GetParam() == Way::connected ? "1" : "0"); }
  ~Ways() override {
    unsetenv("NCCL_P2P_DISABLE");
    unsetenv("NCCL_SHM_DISABLE");
  }

 private:
  static void choose(const char* disabled) {
    setenv("NCCL_P2P_DISABLE", disabled, 1);
    setenv("NCCL_SHM_DISABLE", disabled, 1);
  }
};
std::string nameOfWay(const testing::TestParamInfo<Way>& info) {
  return info.param == Way::direct ? "Direct" : "Connected";
}
#define ON_EVERY_WAY(Suite)     \
  class Suite : public Ways {}; \
  INSTANTIATE_TEST_SUITE_P(Over, Suite, testing::Values(Way::direct, Way::connected), nameOfWay)

ON_EVERY_WAY(OneSided);
ON_EVERY_WAY(OneSidedSignals);
ON_EVERY_WAY(OneSidedGroups);
ON_EVERY_WAY(OneSidedOnStreams);
ON_EVERY_WAY(OneSidedNonblocking);
ON_EVERY_WAY(OneSidedWindows);
ON_EVERY_WAY(OneSidedArguments);
ON_EVERY_WAY(OneSidedEnd);

// Again and again, so that a sleeper and an early sender both happen.
void putToAll(int ranks) {
  constexpr size_t count = 3000;
  withRanks(ranks, [&](int rank, ncclComm_t comm) {
    // Each rank writes a part of all the others' windows, and of its own.
    const Window window(comm, ranks * count);
    for (int round = 0; round < 30; ++round) {
      const auto mine = numbers(count, 100'000 * rank + round);
      for (int peer = 0; peer < ranks; ++peer) NCCL_OK(put(mine, peer, window, rank * count, comm));
      std::vector<ncclWaitSignalDesc_t> signals;
      for (int peer = 0; peer < ranks; ++peer) signals.push_back({1, peer, 0, 0});
      NCCL_OK(ncclWaitSignal(ranks, signals.data(), comm, noStream));
      for (int peer = 0; peer < ranks; ++peer) {
        const auto part = window.values().subspan(peer * count, count);
        const auto expected = numbers(count, 100'000 * peer + round);
        ASSERT_TRUE(std::equal(part.begin(), part.end(), expected.begin())) << "from rank " << peer;
      }
      // Nobody writes the next round over this one.
      int done = 1;
      NCCL_OK(ncclAllReduce(&done, &done, 1, ncclInt, ncclSum, comm, noStream));
      ASSERT_EQ(done, ranks);
    }
  });
}
TEST_P(OneSided, WhatWasPutIsThereOnceItsSignalHasCome) {
  for (const int ranks : {1, 2, 3, 5}) putToAll(ranks);
}

// Several times what a socket's buffers take: nobody takes part in what the other sends.
TEST_P(OneSided, LongOnesCrossEachOther) {
  constexpr size_t count = 5'000'000;
  withRanks(2, [&](int rank, ncclComm_t comm) {
    const Window window(comm, count);
    for (int round = 0; round < 3; ++round) {
      NCCL_OK(put(numbers(count, rank + round), 1 - rank, window, 0, comm));
      NCCL_OK(waitFor(1, 1 - rank, comm));
      const auto expected = numbers(count, 1 - rank + round);
      ASSERT_TRUE(std::equal(window.values().begin(), window.values().end(), expected.begin()));
      int done = 1;
      NCCL_OK(ncclAllReduce(&done, &done, 1, ncclInt, ncclSum, comm, noStream));
    }
  });
}

TEST_P(OneSidedSignals, AreCountedByPeerIndexAndContext) {
  const Duo duo;
  for (const auto& [index, context] : {std::pair{0, 0}, {0, 0}, {3, 0}, {0, 2}})
    NCCL_OK(ncclSignal(1, index, context, 0, duo[0], noStream));
  NCCL_OK(waitFor(1, 0, duo[1], noStream, 3));
  NCCL_OK(waitFor(1, 0, duo[1], noStream, 0, 2));
  // The same one twice in one call: they add up.
  ncclWaitSignalDesc_t twice[] = {{1, 0, 0, 0}, {1, 0, 0, 0}};
  NCCL_OK(ncclWaitSignal(2, twice, duo[1], noStream));
  // All are used up now, so this one lasts until the next signal.
  const Stream stream;
  NCCL_OK(waitFor(1, 0, duo[1], stream));
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  EXPECT_EQ(ncclFalconStreamQuery(stream), ncclInProgress);
  NCCL_OK(ncclSignal(1, 3, 0, 0, duo[0], noStream));
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  EXPECT_EQ(ncclFalconStreamQuery(stream), ncclInProgress);
  NCCL_OK(ncclSignal(1, 0, 0, 0, duo[0], noStream));
  NCCL_OK(synchronized(stream));
}

TEST_P(OneSidedGroups, SendBeforeTheyWait) {
  withRanks(2, [](int rank, ncclComm_t comm) {
    const Window window(comm, 4);
    int sum = rank + 1;
    const std::vector<int> mine{rank, 7};
    NCCL_OK(ncclGroupStart());
    NCCL_OK(waitFor(2, 1 - rank, comm));
    NCCL_OK(ncclAllReduce(&sum, &sum, 1, ncclInt, ncclSum, comm, noStream));
    NCCL_OK(put(mine, 1 - rank, window, 1, comm));
    NCCL_OK(ncclSignal(1 - rank, 0, 0, 0, comm, noStream));
    NCCL_OK(ncclGroupEnd());
    EXPECT_THAT(window.values(), ElementsAre(-1, 1 - rank, 7, -1));
    EXPECT_EQ(sum, 3);
    NCCL_OK(ncclAllReduce(&sum, &sum, 1, ncclInt, ncclSum, comm, noStream));
  });
}

TEST_P(OneSidedGroups, ThatFailWriteNothing) {
  const Duo duo;
  const Window mine(duo[0], 4), theirs(duo[1], 4);
  const std::vector<int> value{5};
  NCCL_OK(ncclGroupStart());
  NCCL_OK(put(value, 1, mine, 0, duo[0]));
  EXPECT_EQ(put(value, 2, mine, 0, duo[0]), ncclInvalidArgument);
  EXPECT_EQ(ncclGroupEnd(), ncclInvalidArgument);
  EXPECT_THAT(theirs.values(), Each(-1));
}

TEST_P(OneSidedOnStreams, KeepTheOrderOfTheStream) {
  const Duo duo;
  const Window mine(duo[0], 2), theirs(duo[1], 2);
  const Stream first, second;
  const std::vector<int> answer{31, 32};
  NCCL_OK(waitFor(1, 1, duo[0], first));
  NCCL_OK(put(answer, 1, mine, 0, duo[0], first));
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_THAT(theirs.values(), Each(-1));
  NCCL_OK(put({9}, 0, theirs, 1, duo[1]));
  NCCL_OK(waitFor(1, 0, duo[1], second));
  NCCL_OK(synchronized(second));
  EXPECT_THAT(theirs.values(), ElementsAre(31, 32));
  NCCL_OK(synchronized(first));
  EXPECT_THAT(mine.values(), ElementsAre(-1, 9));
}

TEST_P(OneSidedNonblocking, GoesOnInTheBackground) {
  ncclUniqueId id;
  NCCL_OK(ncclGetUniqueId(&id));
  std::vector<std::thread> threads;
  for (const int rank : {0, 1})
    threads.emplace_back([&, rank] {
      ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
      config.blocking = 0;
      Communicator comm;
      ncclCommInitRankConfig(&comm.handle, 2, id, rank, &config);
      ASSERT_EQ(outcomeOf(comm.handle), ncclSuccess);
      {
        const Window window(comm.handle, 1);
        NCCL_OK(ncclGroupStart());
        NCCL_OK(waitFor(1, 1 - rank, comm.handle));
        const std::vector<int> value{rank};
        NCCL_OK(put(value, 1 - rank, window, 0, comm.handle));
        EXPECT_EQ(ncclGroupEnd(), ncclInProgress);
        ASSERT_EQ(outcomeOf(comm.handle), ncclSuccess) << ncclGetLastError(nullptr);
        EXPECT_THAT(window.values(), ElementsAre(1 - rank));
        EXPECT_EQ(ncclSignal(rank, 0, 0, 0, comm.handle, noStream), ncclInProgress);
        ASSERT_EQ(outcomeOf(comm.handle), ncclSuccess);
      }
      ncclCommFinalize(comm.handle);
      ASSERT_EQ(outcomeOf(comm.handle), ncclSuccess);
    });
  for (auto& thread : threads) thread.join();
}

TEST_P(OneSidedWindows, AreTheSameByTheirOrder) {
  withRanks(2, [](int rank, ncclComm_t comm) {
    const Window first(comm, 2);
    const auto second = std::make_unique<Window>(comm, 2);
    const Window third(comm, 2);
    NCCL_OK(put({rank}, 1 - rank, third, 0, comm));
    NCCL_OK(put({rank + 10}, 1 - rank, first, 1, comm));
    NCCL_OK(waitFor(2, 1 - rank, comm));
    EXPECT_THAT(first.values(), ElementsAre(-1, 11 - rank));
    EXPECT_THAT(second->values(), Each(-1));
    EXPECT_THAT(third.values(), ElementsAre(1 - rank, -1));
    // More in all than may be open at a time.
    for (int i = 0; i < 100; ++i) {
      const Window passing(comm, 1);
      NCCL_OK(put({i}, 1 - rank, passing, 0, comm));
      NCCL_OK(waitFor(1, 1 - rank, comm));
      ASSERT_THAT(passing.values(), ElementsAre(i));
      int done = 0;
      NCCL_OK(ncclAllReduce(&done, &done, 1, ncclInt, ncclSum, comm, noStream));
    }
  });
}

// Over connections any number may be.
TEST(OneSidedDirectWindows, BeyondTheMostThatMayBeOpenAreRefused) {
  const Duo duo;
  std::vector<std::unique_ptr<Window>> mine, theirs;
  for (int i = 0; i < 64; ++i) {
    mine.push_back(std::make_unique<Window>(duo[0], 1));
    theirs.push_back(std::make_unique<Window>(duo[1], 1));
  }
  EXPECT_EQ(put({1}, 1, *mine[63], 0, duo[0]), ncclInvalidUsage);
  EXPECT_THAT(ncclGetLastError(nullptr), HasSubstr("more than 63 of them open"));
  NCCL_OK(put({1}, 1, *mine[62], 0, duo[0]));
  EXPECT_THAT(theirs[62]->values(), ElementsAre(1));
  theirs[7]->giveBack();
  mine.push_back(std::make_unique<Window>(duo[0], 1));
  theirs.push_back(std::make_unique<Window>(duo[1], 1));
  NCCL_OK(put({2}, 1, *mine[64], 0, duo[0]));
  EXPECT_THAT(theirs[64]->values(), ElementsAre(2));
}

TEST_P(OneSidedWindows, OfARankThatIsLateAreWaitedFor) {
  const Duo duo;
  const Window mine(duo[0], 1);
  const Stream stream;
  const std::vector<int> value{4};
  NCCL_OK(put(value, 1, mine, 0, duo[0], stream));
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  EXPECT_EQ(ncclFalconStreamQuery(stream), ncclInProgress);
  const Window theirs(duo[1], 1);
  NCCL_OK(synchronized(stream));
  EXPECT_THAT(theirs.values(), ElementsAre(4));
}

TEST_P(OneSidedWindows, ThatCannotBeWrittenAreErrors) {
  const Duo duo;
  const Window mine(duo[0], 4);
  Window theirs(duo[1], 3);
  EXPECT_EQ(put({1, 2}, 1, mine, 2, duo[0]), ncclInvalidArgument);
  EXPECT_THAT(ncclGetLastError(nullptr), HasSubstr("8 bytes at offset 8 do not fit into the window of rank 1"));
  EXPECT_EQ(put({}, 1, mine, SIZE_MAX, duo[0]), ncclInvalidArgument);
  EXPECT_THAT(theirs.values(), Each(-1));
  theirs.giveBack();
  EXPECT_EQ(put({1}, 1, mine, 0, duo[0]), ncclInvalidUsage);
  EXPECT_THAT(ncclGetLastError(nullptr), HasSubstr("rank 1 has given the window back"));
  EXPECT_THAT(theirs.values(), Each(-1));
  // The communicator is as well as it was.
  NCCL_OK(ncclSignal(1, 0, 0, 0, duo[0], noStream));
  NCCL_OK(waitFor(1, 0, duo[1]));
  // One that a rank fails to register is none on the others, and the next one is the next on all.
  const Window odd(duo[0], 1);
  alignas(4096) static char memory[4096];
  ncclWindow_t none = nullptr;
  EXPECT_EQ(ncclCommWindowRegister(duo[1], memory + 8, 8, &none, NCCL_WIN_DEFAULT), ncclInvalidArgument);
  EXPECT_EQ(put({1}, 1, odd, 0, duo[0]), ncclInvalidUsage);
  const Window next(duo[0], 1), theirNext(duo[1], 1);
  NCCL_OK(put({1}, 1, next, 0, duo[0]));
  EXPECT_THAT(theirNext.values(), ElementsAre(1));
}

TEST_P(OneSidedArguments, ThatCannotBeAreNamed) {
  const Duo duo;
  const Window mine(duo[0], 4), theirs(duo[1], 4);
  const auto refused = [](ncclResult_t result, const char* why) {
    EXPECT_EQ(result, ncclInvalidArgument);
    EXPECT_THAT(ncclGetLastError(nullptr), HasSubstr(why));
  };
  const int value = 1;
  refused(ncclPutSignal(nullptr, 1, ncclInt, 1, mine.handle(), 0, 0, 0, 0, duo[0], noStream), "localbuff is NULL");
  refused(ncclPutSignal(&value, 1, static_cast<ncclDataType_t>(99), 1, mine.handle(), 0, 0, 0, 0, duo[0], noStream),
          "99 is no data type");
  refused(ncclPutSignal(&value, SIZE_MAX, ncclInt, 1, mine.handle(), 0, 0, 0, 0, duo[0], noStream), "do not fit");
  refused(ncclSignal(2, 0, 0, 0, duo[0], noStream), "peer is 2, not 0 to 1");
  refused(ncclSignal(1, 16, 0, 0, duo[0], noStream), "sigIdx is 16, not 0 to 15");
  refused(ncclSignal(1, 0, -1, 0, duo[0], noStream), "ctx is -1, not 0 to 3");
  refused(ncclSignal(1, 0, 0, 1, duo[0], noStream), "flags is 0x1");
  refused(ncclSignal(1, 0, 0, 0, nullptr, noStream), "comm is NULL");
  refused(ncclPutSignal(&value, 1, ncclInt, 1, nullptr, 0, 0, 0, 0, duo[0], noStream), "peerWin is NULL");
  refused(ncclWaitSignal(-1, nullptr, duo[0], noStream), "nDesc is -1");
  refused(ncclWaitSignal(0, nullptr, duo[0], noStream), "nDesc is 0");
  refused(ncclWaitSignal(1, nullptr, duo[0], noStream), "signalDescs is NULL");
  refused(waitFor(-1, 1, duo[0]), "opCnt is -1");
  refused(waitFor(0, 1, duo[0]), "opCnt is 0");
  EXPECT_EQ(put({1}, 1, theirs, 0, duo[0]), ncclInvalidUsage) << "the window is another communicator's";
}

TEST_P(OneSidedEnd, OfAWaitComesWithAbortRevokeAndLeaving) {
  const auto waitOnAThread = [](ncclComm_t comm, ncclResult_t& result) {
    std::thread thread([comm, &result] { result = waitFor(1, 0, comm); });
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    return thread;
  };
  ncclResult_t result = ncclSuccess;
  {
    Duo duo;
    std::thread waits = waitOnAThread(duo[1], result);
    NCCL_OK(ncclCommAbort(duo.take(0)));
    waits.join();
    EXPECT_EQ(result, ncclRemoteError);
  }
  {
    const Duo duo;
    std::thread waits = waitOnAThread(duo[1], result);
    NCCL_OK(ncclCommRevoke(duo[1], NCCL_REVOKE_DEFAULT));
    waits.join();
    EXPECT_EQ(result, ncclInvalidUsage);
    EXPECT_EQ(ncclSignal(0, 0, 0, 0, duo[1], noStream), ncclInvalidUsage);
  }
  Duo duo;
  NCCL_OK(ncclSignal(1, 0, 0, 0, duo[0], noStream));
  NCCL_OK(ncclCommDestroy(duo.take(0)));
  // What it sent before it left counts.
  NCCL_OK(waitFor(1, 0, duo[1]));
  EXPECT_EQ(waitFor(1, 0, duo[1]), ncclRemoteError);
  EXPECT_THAT(ncclGetLastError(nullptr), HasSubstr("rank 0"));
}

}  // namespace
}  // namespace falcon::abi
