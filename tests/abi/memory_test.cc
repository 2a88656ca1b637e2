// Memory, registrations, and groups that are only simulated.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "abi/ranks.h"

namespace falcon::abi {
namespace {

using testing::HasSubstr;

TEST(Memory, IsWholePagesThatCanBeWrittenAndFreedOnce) {
  for (const size_t size : {size_t{1}, size_t{4096}, size_t{5000}, size_t{2} << 20, (size_t{5} << 20) + 1}) {
    void* memory = nullptr;
    NCCL_OK(ncclMemAlloc(&memory, size));
    ASSERT_NE(memory, nullptr);
    const size_t alignment = size >= size_t{2} << 20 ? size_t{2} << 20 : 4096;
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory) % alignment, 0u) << size;
    std::memset(memory, 1, size);
    NCCL_OK(ncclMemFree(memory));
    EXPECT_EQ(ncclMemFree(memory), ncclInvalidArgument);
    EXPECT_THAT(ncclGetLastError(nullptr), HasSubstr("did not come from ncclMemAlloc, or was freed before"));
  }
}

TEST(Memory, RefusesWhatCannotBe) {
  void* memory = &memory;
  EXPECT_EQ(ncclMemAlloc(nullptr, 1), ncclInvalidArgument);
  EXPECT_EQ(ncclMemAlloc(&memory, SIZE_MAX), ncclInvalidArgument);
  EXPECT_EQ(memory, nullptr);
  NCCL_OK(ncclMemAlloc(&memory, 0));
  EXPECT_EQ(memory, nullptr);
  NCCL_OK(ncclMemFree(nullptr));
  int stranger;
  EXPECT_EQ(ncclMemFree(&stranger), ncclInvalidArgument);
}

TEST(Memory, ServesCollectivesWithAndWithoutRegistration) {
  withRanks(2, [](int rank, ncclComm_t comm) {
    void* memory = nullptr;
    constexpr size_t count = 1 << 20;
    NCCL_OK(ncclMemAlloc(&memory, count * sizeof(float)));
    auto* values = static_cast<float*>(memory);
    ncclWindow_t window = nullptr;
    NCCL_OK(ncclCommWindowRegister(comm, memory, count * sizeof(float), &window, NCCL_WIN_COLL_SYMMETRIC));
    for (size_t i = 0; i < count; ++i) values[i] = static_cast<float>(rank + 1);
    NCCL_OK(ncclAllReduce(values, values, count, ncclFloat, ncclSum, comm, noStream));
    EXPECT_EQ(std::count(values, values + count, 3.0f), static_cast<std::ptrdiff_t>(count));
    NCCL_OK(ncclCommWindowDeregister(comm, window));
    NCCL_OK(ncclMemFree(memory));
  });
}

TEST(Registration, KnowsItsHandles) {
  const Communicator comm{alone()}, other{alone()};
  float buffer[16];
  void *first = nullptr, *second = nullptr;
  NCCL_OK(ncclCommRegister(comm.handle, buffer, sizeof buffer, &first));
  NCCL_OK(ncclCommRegister(comm.handle, buffer, sizeof buffer, &second));
  EXPECT_NE(first, nullptr);
  EXPECT_NE(first, second);
  EXPECT_EQ(ncclCommDeregister(other.handle, first), ncclInvalidUsage);
  NCCL_OK(ncclCommDeregister(comm.handle, first));
  EXPECT_EQ(ncclCommDeregister(comm.handle, first), ncclInvalidUsage);
  EXPECT_THAT(ncclGetLastError(nullptr), HasSubstr("is no registered buffer of this communicator"));
  NCCL_OK(ncclCommDeregister(comm.handle, second));
  EXPECT_EQ(ncclCommDeregister(comm.handle, buffer), ncclInvalidUsage);
  // What a library that registers nothing gives.
  NCCL_OK(ncclCommDeregister(comm.handle, nullptr));
  EXPECT_EQ(ncclCommRegister(comm.handle, nullptr, 16, &first), ncclInvalidArgument);
  EXPECT_EQ(ncclCommRegister(comm.handle, buffer, 0, &first), ncclInvalidArgument);
  EXPECT_EQ(ncclCommRegister(comm.handle, buffer, SIZE_MAX, &first), ncclInvalidArgument);
  EXPECT_EQ(ncclCommRegister(comm.handle, buffer, sizeof buffer, nullptr), ncclInvalidArgument);
}

TEST(Window, KnowsItsHandlesFlagsAndAlignment) {
  const Communicator comm{alone()};
  void* memory = nullptr;
  NCCL_OK(ncclMemAlloc(&memory, 8192));
  auto* bytes = static_cast<char*>(memory);
  ncclWindow_t window = nullptr, second = nullptr;
  NCCL_OK(ncclCommWindowRegister(comm.handle, bytes, 4096, &window, NCCL_WIN_DEFAULT));
  NCCL_OK(ncclCommWindowRegister(comm.handle, bytes + 4096, 4096, &second, NCCL_WIN_COLL_SYMMETRIC));
  EXPECT_NE(window, nullptr);
  EXPECT_NE(window, second);
  EXPECT_EQ(ncclCommWindowRegister(comm.handle, bytes + 8, 16, &second, NCCL_WIN_DEFAULT), ncclInvalidArgument);
  EXPECT_THAT(ncclGetLastError(nullptr), HasSubstr("4096"));
  EXPECT_EQ(ncclCommWindowRegister(comm.handle, bytes, 16, &second, 8), ncclInvalidArgument);
  EXPECT_EQ(ncclCommWindowRegister(comm.handle, bytes, 16, nullptr, 0), ncclInvalidArgument);
  EXPECT_EQ(ncclCommWindowRegister(comm.handle, nullptr, 16, &second, 0), ncclInvalidArgument);
  NCCL_OK(ncclCommWindowDeregister(comm.handle, window));
  EXPECT_EQ(ncclCommWindowDeregister(comm.handle, window), ncclInvalidUsage);
  NCCL_OK(ncclCommWindowDeregister(comm.handle, nullptr));
  NCCL_OK(ncclMemFree(memory));
}

TEST(SimulatedGroup, TellsATimeAndRunsNothing) {
  withRanks(2, [](int rank, ncclComm_t comm) {
    std::vector<float> values(1 << 20, 1.0f);
    const auto before = values;
    const auto estimate = [&](size_t count, int calls) {
      ncclSimInfo_t info = NCCL_SIM_INFO_INITIALIZER;
      EXPECT_EQ(ncclSuccess, ncclGroupStart());
      for (int i = 0; i < calls; ++i)
        EXPECT_EQ(ncclSuccess, ncclAllReduce(values.data(), values.data(), count, ncclFloat, ncclSum, comm, noStream));
      EXPECT_EQ(ncclSuccess, ncclGroupSimulateEnd(&info));
      return info.estimatedTime;
    };
    const float small = estimate(1, 1), large = estimate(values.size(), 1);
    EXPECT_GT(small, 0);
    EXPECT_GT(large, 10 * small);
    EXPECT_FLOAT_EQ(estimate(values.size(), 2), 2 * large);
    EXPECT_EQ(values, before);
    // Only one rank simulated: the communicator's order of calls is unharmed.
    if (rank == 0) estimate(1, 3);
    NCCL_OK(ncclAllReduce(values.data(), values.data(), 5, ncclFloat, ncclSum, comm, noStream));
    EXPECT_EQ(values[4], 2);
    EXPECT_EQ(values[5], 1);
  });
}

TEST(SimulatedGroup, RefusesWhatCannotBe) {
  ncclSimInfo_t info = NCCL_SIM_INFO_INITIALIZER;
  EXPECT_EQ(ncclGroupSimulateEnd(&info), ncclInvalidUsage);
  EXPECT_EQ(ncclGroupSimulateEnd(nullptr), ncclInvalidArgument);

  // Whatever it is given, it ends the group.
  NCCL_OK(ncclGroupStart());
  EXPECT_EQ(ncclGroupSimulateEnd(nullptr), ncclInvalidArgument);
  EXPECT_EQ(ncclGroupEnd(), ncclInvalidUsage);

  for (int level = 0; level < 3; ++level) NCCL_OK(ncclGroupStart());
  ncclSimInfo_t rubbish{};
  EXPECT_EQ(ncclGroupSimulateEnd(&rubbish), ncclInvalidArgument);
  // An inner end only counts down.
  NCCL_OK(ncclGroupSimulateEnd(&info));
  EXPECT_EQ(info.estimatedTime, NCCL_UNDEF_FLOAT);
  NCCL_OK(ncclGroupSimulateEnd(&info));
  EXPECT_EQ(info.estimatedTime, 0);

  ncclUniqueId id;
  ncclComm_t comm = nullptr;
  NCCL_OK(ncclGetUniqueId(&id));
  NCCL_OK(ncclGroupStart());
  NCCL_OK(ncclCommInitRank(&comm, 1, id, 0));
  EXPECT_EQ(ncclGroupSimulateEnd(&info), ncclInvalidUsage);
  EXPECT_EQ(comm, nullptr);
  EXPECT_EQ(ncclGroupEnd(), ncclInvalidUsage);
}

}  // namespace
}  // namespace falcon::abi
