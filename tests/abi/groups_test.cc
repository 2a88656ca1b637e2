// Group semantics: depth per thread, every call a group of its own, the first error returned.
#include <gtest/gtest.h>

#include <array>

#include "abi/ranks.h"

namespace falcon::abi {
namespace {

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

TEST(Group, MakesTheSplitsOfOneCommunicatorInOrder) {
  withRanks(3, [](int rank, ncclComm_t& comm) {
    for (int round = 0; round < 20; ++round) {
      std::array<Communicator, 8> children;
      // One more rank is left out of every other one.
      const auto color = [](int of, std::size_t split) { return split % 2 == 1 && of == 2 ? 1 : 0; };
      NCCL_OK(ncclGroupStart());
      for (std::size_t split = 0; split < children.size(); ++split)
        NCCL_OK(ncclCommSplit(comm, color(rank, split), 0, &children[split].handle, nullptr));
      NCCL_OK(ncclGroupEnd());
      for (std::size_t split = 0; split < children.size(); ++split) {
        int count = 0;
        NCCL_OK(ncclCommCount(children[split].handle, &count));
        EXPECT_EQ(count, split % 2 == 0 ? 3 : rank == 2 ? 1 : 2);
      }
    }
  });
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

}  // namespace
}  // namespace falcon::abi
