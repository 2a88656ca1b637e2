// Communicators with config.blocking = 0: every call may go on in the background, and ncclCommGetAsyncError tells.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <csignal>
#include <fstream>
#include <set>

#include "abi/ranks.h"

namespace falcon::abi {
namespace {

using testing::HasSubstr;

TEST(Nonblocking, OneThreadMakesTwoRanksWithoutAGroup) {
  ncclUniqueId id;
  NCCL_OK(ncclGetUniqueId(&id));
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  std::array<Communicator, 2> comms;
  ASSERT_EQ(ncclInProgress, ncclCommInitRankConfig(&comms[0].handle, 2, id, 0, &config));
  // Its partner has not come, so it cannot be ready: use is refused.
  int count = 0;
  EXPECT_EQ(ncclInvalidArgument, ncclCommCount(comms[0].handle, &count));
  ASSERT_EQ(ncclInProgress, ncclCommInitRankConfig(&comms[1].handle, 2, id, 1, &config));
  for (const Communicator& comm : comms) EXPECT_EQ(outcomeOf(comm.handle), ncclSuccess);
  NCCL_OK(ncclCommCount(comms[0].handle, &count));
  EXPECT_EQ(count, 2);

  std::array<Communicator, 2> children;
  for (const int rank : {0, 1})
    ASSERT_EQ(ncclInProgress, ncclCommSplit(comms[rank].handle, rank == 0 ? 0 : NCCL_SPLIT_NOCOLOR, 0,
                                            &children[rank].handle, nullptr));
  EXPECT_EQ(outcomeOf(children[0].handle), ncclSuccess);
  EXPECT_EQ(children[1].handle, nullptr);
}

/// The threads of this process in which SIGUSR1 may run its handler.
std::set<std::string> interruptedThreads() {
  std::set<std::string> threads;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream status(task.path() / "status");
    for (std::string word; status >> word;)
      if (word == "SigBlk:" && status >> word && (std::stoull(word, nullptr, 16) >> (SIGUSR1 - 1) & 1) == 0)
        threads.insert(task.path().filename());
  }
  return threads;
}

TEST(Nonblocking, ASetUpTakesNoSignalsOfTheApplication) {
  ncclUniqueId id;
  NCCL_OK(ncclGetUniqueId(&id));
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  const auto before = interruptedThreads();
  std::array<Communicator, 2> comms;
  for (const int rank : {0, 1}) {
    ASSERT_EQ(ncclInProgress, ncclCommInitRankConfig(&comms[rank].handle, 2, id, rank, &config));
    EXPECT_EQ(interruptedThreads(), before);
  }
  for (const Communicator& comm : comms) EXPECT_EQ(outcomeOf(comm.handle), ncclSuccess);
}

TEST(Nonblocking, AFailedSetUpIsToldByItsState) {
  inFreshChild({{"NCCL_FALCON_ENGINE", "vendor"}, {"NCCL_FALCON_VENDOR_LIBRARY", "/nowhere"}}, [] {
    ncclUniqueId id;
    NCCL_OK(ncclGetUniqueId(&id));
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    Communicator comm;
    ASSERT_EQ(ncclInProgress, ncclCommInitRankConfig(&comm.handle, 1, id, 0, &config));
    EXPECT_EQ(outcomeOf(comm.handle), ncclInvalidUsage);
    int count = 0;
    EXPECT_EQ(ncclInvalidArgument, ncclCommCount(comm.handle, &count));
  });
}

/// Two nonblocking ranks in this thread.
struct Pair {
  std::array<Communicator, 2> comms;
  Pair() {
    ncclUniqueId id;
    EXPECT_EQ(ncclSuccess, ncclGetUniqueId(&id));
    for (int rank : {0, 1}) {
      ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
      config.blocking = 0;
      EXPECT_EQ(ncclInProgress, ncclCommInitRankConfig(&comms[rank].handle, 2, id, rank, &config));
    }
    for (const Communicator& comm : comms) EXPECT_EQ(outcomeOf(comm.handle), ncclSuccess);
  }
  ncclComm_t operator[](int rank) const { return comms[rank].handle; }
};

TEST(Nonblocking, AParentIsAtWorkUntilItsPartsAreMade) {
  const Pair pair;
  std::array<Communicator, 2> children;
  ASSERT_EQ(ncclInProgress, ncclCommSplit(pair[1], NCCL_SPLIT_NOCOLOR, 0, &children[1].handle, nullptr));
  // Its partner has not called: its part cannot be done, and it must not leave yet.
  ncclResult_t state = ncclSuccess;
  NCCL_OK(ncclCommGetAsyncError(pair[1], &state));
  EXPECT_EQ(state, ncclInProgress);
  ASSERT_EQ(ncclInProgress, ncclCommSplit(pair[0], 0, 0, &children[0].handle, nullptr));
  for (const int rank : {0, 1}) EXPECT_EQ(outcomeOf(pair[rank]), ncclSuccess);
  int count = 0;
  NCCL_OK(ncclCommCount(children[0].handle, &count));
  EXPECT_EQ(count, 1);
}

TEST(Nonblocking, ShrinkWithAbortDoesNotWaitForASplitThatNobodyJoins) {
  const Pair pair;
  Communicator split, left;
  ASSERT_EQ(ncclInProgress, ncclCommSplit(pair[0], 0, 0, &split.handle, nullptr));
  int excluded = 1;
  ASSERT_EQ(ncclInProgress, ncclCommShrink(pair[0], &excluded, 1, &left.handle, nullptr, NCCL_SHRINK_ABORT));
  EXPECT_EQ(outcomeOf(pair[0]), ncclSuccess);
  int count = 0;
  NCCL_OK(ncclCommCount(left.handle, &count));
  EXPECT_EQ(count, 1);
}

TEST(Nonblocking, SplitsInARowAreMadeInOrder) {
  const Pair pair;
  for (int round = 0; round < 20; ++round) {
    constexpr int splits = 8;
    std::array<std::array<Communicator, splits>, 2> children;
    // Every other one keeps rank 1 out.
    const auto isAlone = [](int split) { return split % 2 == 0; };
    for (int split = 0; split < splits; ++split)
      for (const int rank : {0, 1})
        ASSERT_EQ(ncclInProgress, ncclCommSplit(pair[rank], rank == 1 && isAlone(split) ? NCCL_SPLIT_NOCOLOR : 0, 0,
                                                &children[rank][split].handle, nullptr));
    for (const int rank : {0, 1}) EXPECT_EQ(outcomeOf(pair[rank]), ncclSuccess);
    for (int split = 0; split < splits; ++split) {
      int count = 0;
      NCCL_OK(ncclCommCount(children[0][split].handle, &count));
      EXPECT_EQ(count, isAlone(split) ? 1 : 2);
    }
  }
}

TEST(Nonblocking, CollectivesGoOnInTheBackground) {
  const Pair pair;
  std::array<float, 2> in = {1, 2}, out{};
  ASSERT_EQ(ncclInProgress, ncclAllReduce(&in[0], &out[0], 1, ncclFloat, ncclSum, pair[0], noStream));
  // Its partner has not called: it cannot be done.
  ncclResult_t state = ncclSuccess;
  NCCL_OK(ncclCommGetAsyncError(pair[0], &state));
  EXPECT_EQ(state, ncclInProgress);
  EXPECT_EQ(ncclAllReduce(&in[0], &out[0], 1, ncclFloat, ncclSum, pair[0], noStream), ncclInvalidArgument);
  EXPECT_THAT(ncclGetLastError(nullptr), HasSubstr("still in progress"));
  EXPECT_EQ(ncclCommFinalize(pair[0]), ncclInvalidArgument);
  ASSERT_EQ(ncclInProgress, ncclAllReduce(&in[1], &out[1], 1, ncclFloat, ncclSum, pair[1], noStream));
  for (const int rank : {0, 1}) {
    EXPECT_EQ(outcomeOf(pair[rank]), ncclSuccess);
    EXPECT_EQ(out[rank], 3);
  }
  // And once more: it is ready again.
  NCCL_OK(ncclGroupStart());
  for (const int rank : {0, 1}) NCCL_OK(ncclBroadcast(&in[rank], &out[rank], 1, ncclFloat, 1, pair[rank], noStream));
  EXPECT_EQ(ncclGroupEnd(), ncclInProgress);
  for (const int rank : {0, 1}) {
    EXPECT_EQ(outcomeOf(pair[rank]), ncclSuccess);
    EXPECT_EQ(out[rank], 2);
  }
}

TEST(Nonblocking, FinalizeGoesOnInTheBackground) {
  const Pair pair;
  for (const int rank : {0, 1}) {
    EXPECT_EQ(ncclCommFinalize(pair[rank]), ncclInProgress);
    EXPECT_EQ(outcomeOf(pair[rank]), ncclSuccess);
    EXPECT_EQ(ncclCommFinalize(pair[rank]), ncclInvalidArgument);
  }
}

TEST(Nonblocking, WrongArgumentsAreToldAtOnce) {
  const Pair pair;
  float value = 0;
  EXPECT_EQ(ncclAllReduce(nullptr, &value, 1, ncclFloat, ncclSum, pair[0], noStream), ncclInvalidArgument);
  EXPECT_EQ(ncclBroadcast(&value, &value, 1, ncclFloat, 2, pair[0], noStream), ncclInvalidArgument);
  EXPECT_EQ(outcomeOf(pair[0]), ncclSuccess);
}

TEST(Nonblocking, WhatGoesWrongLaterIsToldByTheState) {
  const Pair pair;
  float value = 0;
  // To oneself, without a counterpart: known when the group is looked at as a whole.
  ASSERT_EQ(ncclInProgress, ncclSend(&value, 1, ncclFloat, 0, pair[0], noStream));
  EXPECT_EQ(outcomeOf(pair[0]), ncclInvalidUsage);
}

TEST(Nonblocking, AbortAndRevokeEndWhatIsUnderWay) {
  for (const bool abort : {true, false}) {
    Pair pair;
    float value = 0;
    ASSERT_EQ(ncclInProgress, ncclAllReduce(&value, &value, 1, ncclFloat, ncclSum, pair[0], noStream));
    if (abort) {
      NCCL_OK(ncclCommAbort(std::exchange(pair.comms[0].handle, nullptr)));
      continue;
    }
    NCCL_OK(ncclCommRevoke(pair[0], NCCL_REVOKE_DEFAULT));
    EXPECT_EQ(outcomeOf(pair[0]), ncclSuccess);
    EXPECT_EQ(ncclAllReduce(&value, &value, 1, ncclFloat, ncclSum, pair[0], noStream), ncclInvalidUsage);
  }
}

TEST(Nonblocking, ACommunicatorMayBeDestroyedWhileItWorks) {
  std::array<float, 2> values = {1, 2};
  Pair pair;
  for (const int rank : {0, 1})
    ASSERT_EQ(ncclInProgress, ncclAllReduce(&values[rank], &values[rank], 1, ncclFloat, ncclSum, pair[rank], noStream));
  NCCL_OK(ncclCommDestroy(std::exchange(pair.comms[0].handle, nullptr)));
  EXPECT_EQ(outcomeOf(pair[1]), ncclSuccess);
  EXPECT_EQ(values[1], 3);
}

}  // namespace
}  // namespace falcon::abi
