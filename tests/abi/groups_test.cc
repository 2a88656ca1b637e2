// Group semantics: depth per thread, every call a group of its own, the first error returned.
#include <gtest/gtest.h>

#include <array>

#include "abi/ranks.h"

namespace falcon::abi {
namespace {

cudaStream_t const noStream = nullptr;

TEST(Group, EndWithoutStartIsInvalidUsage) {
  EXPECT_EQ(ncclGroupEnd(), ncclInvalidUsage);
  NCCL_OK(ncclGroupStart());
  NCCL_OK(ncclGroupEnd());
  EXPECT_EQ(ncclGroupEnd(), ncclInvalidUsage);
}

TEST(Group, DepthIsOfTheThread) {
  NCCL_OK(ncclGroupStart());
  std::thread([] { EXPECT_EQ(ncclGroupEnd(), ncclInvalidUsage); }).join();
  NCCL_OK(ncclGroupEnd());
}

TEST(Group, OnlyTheOutermostEndRunsTheCalls) {
  const Communicator comm{alone()};
  float in = 3, out = 0;
  NCCL_OK(ncclGroupStart());
  NCCL_OK(ncclGroupStart());
  NCCL_OK(ncclAllReduce(&in, &out, 1, ncclFloat, ncclSum, comm.handle, noStream));
  NCCL_OK(ncclGroupEnd());
  EXPECT_EQ(out, 0);
  NCCL_OK(ncclGroupEnd());
  EXPECT_EQ(out, 3);
}

TEST(Group, ReturnsTheFirstErrorRunsNothingAndIsOverThen) {
  const Communicator comm{alone()};
  float in = 3, out = 0;
  NCCL_OK(ncclGroupStart());
  NCCL_OK(ncclAllReduce(&in, &out, 1, ncclFloat, ncclSum, comm.handle, noStream));
  EXPECT_EQ(ncclAllReduce(&in, &out, 1, static_cast<ncclDataType_t>(99), ncclSum, comm.handle, noStream),
            ncclInvalidArgument);
  EXPECT_EQ(ncclSend(&in, 1, ncclFloat, 7, comm.handle, noStream), ncclInvalidArgument);
  EXPECT_EQ(ncclGroupEnd(), ncclInvalidArgument);
  EXPECT_NE(std::string(ncclGetLastError(nullptr)).find("99"), std::string::npos) << ncclGetLastError(nullptr);
  EXPECT_EQ(out, 0);
  // The error does not stick to the thread.
  NCCL_OK(ncclAllReduce(&in, &out, 1, ncclFloat, ncclSum, comm.handle, noStream));
  EXPECT_EQ(out, 3);
}

TEST(Group, ANullCommunicatorSpoilsIt) {
  float value = 1;
  NCCL_OK(ncclGroupStart());
  EXPECT_EQ(ncclAllReduce(&value, &value, 1, ncclFloat, ncclSum, nullptr, noStream), ncclInvalidArgument);
  EXPECT_EQ(ncclGroupEnd(), ncclInvalidArgument);
}

TEST(Group, OneThreadMakesAndUsesSeveralRanks) {
  constexpr int size = 4;
  ncclUniqueId id;
  NCCL_OK(ncclGetUniqueId(&id));
  std::array<Communicator, size> comms;
  NCCL_OK(ncclGroupStart());
  for (int rank = 0; rank < size; ++rank) NCCL_OK(ncclCommInitRank(&comms[rank].handle, size, id, rank));
  NCCL_OK(ncclGroupEnd());

  std::array<float, size> in, out{};
  NCCL_OK(ncclGroupStart());
  for (int rank = 0; rank < size; ++rank) {
    ASSERT_NE(comms[rank].handle, nullptr);
    in[rank] = static_cast<float>(rank + 1);
    NCCL_OK(ncclAllReduce(&in[rank], &out[rank], 1, ncclFloat, ncclSum, comms[rank].handle, noStream));
  }
  NCCL_OK(ncclGroupEnd());
  for (const float value : out) EXPECT_EQ(value, 10);

  // Splits wait for each other too.
  std::array<Communicator, size> children;
  NCCL_OK(ncclGroupStart());
  for (int rank = 0; rank < size; ++rank)
    NCCL_OK(ncclCommSplit(comms[rank].handle, rank % 2, 0, &children[rank].handle, nullptr));
  NCCL_OK(ncclGroupEnd());
  for (const Communicator& child : children) {
    int count = 0;
    NCCL_OK(ncclCommCount(child.handle, &count));
    EXPECT_EQ(count, 2);
  }
}

TEST(InitAll, MakesTheRanksOfOneProcess) {
  std::array<ncclComm_t, 3> comms{};
  const int devices[] = {4, 0, 2};
  NCCL_OK(ncclCommInitAll(comms.data(), 3, devices));
  for (int rank = 0; rank < 3; ++rank) {
    int value = -1;
    NCCL_OK(ncclCommUserRank(comms[rank], &value));
    EXPECT_EQ(value, rank);
    NCCL_OK(ncclCommCuDevice(comms[rank], &value));
    EXPECT_EQ(value, devices[rank]);
  }
  for (ncclComm_t comm : comms) NCCL_OK(ncclCommDestroy(comm));
}

TEST(Group, DoesNotMixBlockingAndNonblocking) {
  ncclUniqueId id;
  NCCL_OK(ncclGetUniqueId(&id));
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  ncclComm_t first = nullptr, second = nullptr;
  NCCL_OK(ncclGroupStart());
  NCCL_OK(ncclCommInitRank(&first, 2, id, 0));
  EXPECT_EQ(ncclCommInitRankConfig(&second, 2, id, 1, &config), ncclInvalidArgument);
  EXPECT_EQ(ncclGroupEnd(), ncclInvalidArgument);
  EXPECT_EQ(first, nullptr);
}

ncclResult_t waitFor(ncclComm_t comm) {
  ncclResult_t state = ncclInProgress;
  while (state == ncclInProgress) {
    EXPECT_EQ(ncclSuccess, ncclCommGetAsyncError(comm, &state));
    std::this_thread::yield();
  }
  return state;
}

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
  for (const Communicator& comm : comms) EXPECT_EQ(waitFor(comm.handle), ncclSuccess);
  NCCL_OK(ncclCommCount(comms[0].handle, &count));
  EXPECT_EQ(count, 2);

  std::array<Communicator, 2> children;
  for (const int rank : {0, 1})
    ASSERT_EQ(ncclInProgress, ncclCommSplit(comms[rank].handle, rank == 0 ? 0 : NCCL_SPLIT_NOCOLOR, 0,
                                            &children[rank].handle, nullptr));
  EXPECT_EQ(waitFor(children[0].handle), ncclSuccess);
  EXPECT_EQ(children[1].handle, nullptr);
}

TEST(Nonblocking, AFailedSetUpIsToldByItsState) {
  inFreshChild({{"NCCL_FALCON_ENGINE", "vendor"}, {"NCCL_FALCON_VENDOR_LIBRARY", "/nowhere"}}, [] {
    ncclUniqueId id;
    NCCL_OK(ncclGetUniqueId(&id));
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    Communicator comm;
    ASSERT_EQ(ncclInProgress, ncclCommInitRankConfig(&comm.handle, 1, id, 0, &config));
    EXPECT_EQ(waitFor(comm.handle), ncclInvalidUsage);
    int count = 0;
    EXPECT_EQ(ncclInvalidArgument, ncclCommCount(comm.handle, &count));
  });
}

}  // namespace
}  // namespace falcon::abi
