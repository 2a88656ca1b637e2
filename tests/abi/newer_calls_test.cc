// What NCCL has had since 2.29, on host memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <map>
#include <string>

#include "abi/ranks.h"

namespace falcon::abi {
namespace {

using testing::HasSubstr;

ncclCollConfig_t settings() {
  return NCCL_COLLCONFIG_INITIALIZER;
}

TEST(Configured, CollectivesGiveWhatThePlainOnesGive) {
  constexpr int ranks = 3;
  withRanks(ranks, [](int rank, ncclComm_t comm) {
    ncclCollConfig_t config = settings();
    config.minCTAs = 1;
    config.maxCTAs = 2;
    config.userProfilerTag = 7;
    std::vector<int> one{rank + 1}, all(ranks, -1), sum(1, -1);
    NCCL_OK(ncclAllReduceConfig(one.data(), sum.data(), 1, ncclInt, ncclSum, comm, noStream, &config));
    EXPECT_EQ(sum[0], 6);
    NCCL_OK(ncclAllGatherConfig(one.data(), all.data(), 1, ncclInt, comm, noStream, &config));
    EXPECT_EQ(all, (std::vector<int>{1, 2, 3}));
    NCCL_OK(ncclReduceScatterConfig(all.data(), sum.data(), 1, ncclInt, ncclSum, comm, noStream, nullptr));
    EXPECT_EQ(sum[0], 3 * (rank + 1));
    std::vector<int> from{10 * rank, 10 * rank + 1, 10 * rank + 2};
    NCCL_OK(ncclAlltoAllConfig(from.data(), all.data(), 1, ncclInt, comm, noStream, &config));
    EXPECT_EQ(all, (std::vector<int>{rank, 10 + rank, 20 + rank}));
    NCCL_OK(ncclBroadcastConfig(one.data(), sum.data(), 1, ncclInt, 2, comm, noStream, &config));
    EXPECT_EQ(sum[0], 3);
    sum[0] = -1;
    NCCL_OK(ncclReduceConfig(one.data(), sum.data(), 1, ncclInt, ncclMax, 1, comm, noStream, &config));
    EXPECT_EQ(sum[0], rank == 1 ? 3 : -1);
    NCCL_OK(ncclGatherConfig(one.data(), all.data(), 1, ncclInt, 0, comm, noStream, &config));
    if (rank == 0) {
      EXPECT_EQ(all, (std::vector<int>{1, 2, 3}));
    }
    NCCL_OK(ncclScatterConfig(from.data(), sum.data(), 1, ncclInt, 0, comm, noStream, &config));
    EXPECT_EQ(sum[0], rank);
    // In a group the settings need not outlive the call.
    NCCL_OK(ncclGroupStart());
    {
      ncclCollConfig_t gone = settings();
      NCCL_OK(ncclAllReduceConfig(one.data(), sum.data(), 1, ncclInt, ncclSum, comm, noStream, &gone));
      gone.magic = 0;
    }
    NCCL_OK(ncclGroupEnd());
    EXPECT_EQ(sum[0], 6);
  });
}

TEST(Configured, SettingsThatCannotBeAreRefused) {
  const Communicator comm{alone()};
  int value = 1;
  const auto outcome = [&](const ncclCollConfig_t& config) {
    return ncclAllReduceConfig(&value, &value, 1, ncclInt, ncclSum, comm.handle, noStream, &config);
  };
  ncclCollConfig_t config = settings();
  EXPECT_EQ(outcome(config), ncclSuccess);
  config.magic = 1;
  EXPECT_EQ(outcome(config), ncclInvalidArgument);
  config = settings();
  config.size = 8;
  EXPECT_EQ(outcome(config), ncclInvalidArgument);
  config = settings();
  config.minCTAs = 4;
  config.maxCTAs = 2;
  EXPECT_EQ(outcome(config), ncclInvalidArgument);
  EXPECT_THAT(ncclGetLastError(nullptr), HasSubstr("minCTAs (above maxCTAs)"));
  config = settings();
  config.userProfilerTag = uint64_t{1} << 63;
  EXPECT_EQ(outcome(config), ncclInvalidArgument);
  config = settings();
  config.algSelection = "TREE";
  EXPECT_EQ(outcome(config), ncclInvalidUsage);
  EXPECT_THAT(ncclGetLastError(nullptr), HasSubstr("'TREE': on host memory NCCL_ALGO chooses"));
  config.forceAlgSelection = 0;
  EXPECT_EQ(outcome(config), ncclSuccess);
  // A program of 2.31 has one field less, and one of a later release has more.
  config = settings();
  config.size = offsetof(ncclCollConfig_t, launchCompletionEvent);
  config.version = 23102;
  EXPECT_EQ(outcome(config), ncclSuccess);
  struct {
    ncclCollConfig_t known = NCCL_COLLCONFIG_INITIALIZER;
    char more[40] = {};
  } later;
  later.known.size = sizeof later;
  later.known.version = 23900;
  EXPECT_EQ(outcome(later.known), ncclSuccess);
}

TEST(Configured, ExtensionsAreReadToTheirEnd) {
  const Communicator comm{alone()};
  int value = 1;
  ncclCollConfig_t config = settings();
  const auto outcome = [&](ncclConfigExt_t& first) {
    config.ext = &first;
    return ncclAllReduceConfig(&value, &value, 1, ncclInt, ncclSum, comm.handle, noStream, &config);
  };
  ncclConfigExt_t iteration{nullptr, {NCCL_FALCON_VENDOR_ID, NCCL_FALCON_OPTION_ITERATION}, {.i = 3}};
  // Another vendor's, and one that we may have later.
  ncclConfigExt_t other{&iteration, {7, NCCL_FALCON_OPTION_ITERATION}, {.s = "any"}};
  ncclConfigExt_t later{&other, {NCCL_FALCON_VENDOR_ID, 1000}, {.i = -1}};
  EXPECT_EQ(outcome(later), ncclSuccess);
  iteration.val.i = -1;
  EXPECT_EQ(outcome(later), ncclInvalidArgument);
  EXPECT_THAT(ncclGetLastError(nullptr), HasSubstr("NCCL_FALCON_OPTION_ITERATION is -1, below 0"));
  iteration.val.i = 3;
  for (const int option : {NCCL_FALCON_OPTION_PHASE, NCCL_FALCON_OPTION_GROUP}) {
    later.key.optionId = option;
    EXPECT_EQ(outcome(later), ncclInvalidArgument) << option;
    later.val.i = 0;
    EXPECT_EQ(outcome(later), ncclSuccess) << option;
    later.val.i = -1;
  }
  later.key.optionId = NCCL_FALCON_OPTION_ITERATION;
  EXPECT_EQ(outcome(later), ncclInvalidArgument);
  EXPECT_THAT(ncclGetLastError(nullptr), HasSubstr("option 1 of vendor 0x46414c twice"));
  std::vector<ncclConfigExt_t> many(65);
  for (int i = 0; i < 65; ++i) many[i] = {i < 64 ? &many[i + 1] : nullptr, {7, i}, {.i = 0}};
  EXPECT_EQ(outcome(many[0]), ncclInvalidArgument);
  EXPECT_THAT(ncclGetLastError(nullptr), HasSubstr("more than 64 entries"));
  EXPECT_EQ(outcome(many[1]), ncclSuccess);
}

// Every release's structure, as long as it is there, with what lies behind it spoiled: only what the release had
// counts.
TEST(Config, OfEveryReleaseIsReadAsFarAsItGoes) {
  struct Release {
    unsigned version;
    size_t size;
  };
  for (const auto& [version, size] : {Release{21400, 24},
                                      {21700, 48},
                                      {21800, 48},
                                      {22500, 56},
                                      {22700, 72},
                                      {22809, 80},
                                      {22907, 88},
                                      {23003, 96},
                                      {23004, 96},
                                      {23007, 96},
                                      {23102, 112},
                                      {23203, 120}}) {
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    std::memset(reinterpret_cast<char*>(&config) + size, 0x7f, sizeof config - size);
    config.size = size;
    config.version = version;
    config.blocking = 1;
    if (version == 23004) config.graphStreamOrdering = 0x7f7f7f7f;  // padding before 2.30.5
    ncclUniqueId id;
    NCCL_OK(ncclGetUniqueId(&id));
    Communicator comm;
    EXPECT_EQ(ncclCommInitRankConfig(&comm.handle, 1, id, 0, &config), ncclSuccess)
        << version << ": " << ncclGetLastError(nullptr);
  }
}

TEST(Suspended, TakesNoWorkUntilItIsResumed) {
  withRanks(2, [](int rank, ncclComm_t comm) {
    int value = rank;
    uint64_t suspended = 9;
    NCCL_OK(ncclCommMemStats(comm, ncclStatGpuMemSuspended, &suspended));
    EXPECT_EQ(suspended, 0u);
    EXPECT_EQ(ncclCommSuspend(comm, 0), ncclInvalidArgument);
    EXPECT_EQ(ncclCommResume(comm), ncclInvalidUsage);
    NCCL_OK(ncclCommSuspend(comm, NCCL_SUSPEND_MEM));
    NCCL_OK(ncclCommMemStats(comm, ncclStatGpuMemSuspended, &suspended));
    EXPECT_EQ(suspended, 1u);
    EXPECT_EQ(ncclAllReduce(&value, &value, 1, ncclInt, ncclSum, comm, noStream), ncclInvalidUsage);
    EXPECT_THAT(ncclGetLastError(nullptr), HasSubstr("call ncclCommResume first"));
    EXPECT_EQ(ncclCommSuspend(comm, NCCL_SUSPEND_MEM), ncclInvalidUsage);
    ncclComm_t child = nullptr;
    EXPECT_EQ(ncclCommSplit(comm, 0, rank, &child, nullptr), ncclInvalidUsage);
    EXPECT_EQ(ncclCommGrow(comm, 3, nullptr, -1, &child, nullptr), ncclInvalidUsage);
    ncclUniqueId id;
    EXPECT_EQ(ncclCommGetUniqueId(comm, &id), ncclInvalidUsage);
    void* handle = nullptr;
    EXPECT_EQ(ncclCommRegister(comm, &value, sizeof value, &handle), ncclInvalidUsage);
    ncclWindow_t window = nullptr;
    EXPECT_EQ(ncclCommWindowRegister(comm, &value, sizeof value, &window, NCCL_WIN_DEFAULT), ncclInvalidUsage);
    NCCL_OK(ncclCommResume(comm));
    NCCL_OK(ncclAllReduce(&value, &value, 1, ncclInt, ncclSum, comm, noStream));
    EXPECT_EQ(value, 1);
  });
}

TEST(MemoryStatistics, SayThatHostMemoryTakesNoneOfADevice) {
  const Communicator comm{alone()};
  for (const auto stat : {ncclStatGpuMemSuspend, ncclStatGpuMemPersist, ncclStatGpuMemTotal}) {
    uint64_t bytes = 9;
    NCCL_OK(ncclCommMemStats(comm.handle, stat, &bytes));
    EXPECT_EQ(bytes, 0u);
  }
  uint64_t bytes = 9;
  EXPECT_EQ(ncclCommMemStats(comm.handle, static_cast<ncclCommMemStat_t>(4), &bytes), ncclInvalidArgument);
  EXPECT_EQ(ncclCommMemStats(comm.handle, ncclStatGpuMemTotal, nullptr), ncclInvalidArgument);
}

/// A communicator of two ranks grows by one, by an id that rank 1 makes. `passed`: to ncclCommGrow by that rank too.
/// @param old    on each of the old ranks, with both communicators
/// @param joins  on the new rank
void growByOne(bool passed, const std::function<void(int rank, ncclComm_t comm, ncclComm_t grown)>& old,
               const std::function<void(ncclComm_t grown)>& joins) {
  ncclUniqueId growth;
  std::atomic<bool> made{false};
  std::thread newcomer([&] {
    while (!made) std::this_thread::yield();
    Communicator grown;
    NCCL_OK(ncclCommGrow(nullptr, 3, &growth, 2, &grown.handle, nullptr));
    joins(grown.handle);
  });
  withRanks(2, [&](int rank, ncclComm_t comm) {
    if (rank == 1) {
      NCCL_OK(ncclCommGetUniqueId(comm, &growth));
      made = true;
    }
    Communicator grown;
    NCCL_OK(ncclCommGrow(comm, 3, passed && rank == 1 ? &growth : nullptr, -1, &grown.handle, nullptr));
    old(rank, comm, grown.handle);
  });
  newcomer.join();
}

TEST(Grown, IsACommunicatorOfTheOldRanksAndTheNewOnes) {
  const auto joins = [](ncclComm_t grown) {
    int value = 100;
    NCCL_OK(ncclAllReduce(&value, &value, 1, ncclInt, ncclSum, grown, noStream));
    EXPECT_EQ(value, 100 + 0 + 1);
  };
  const auto old = [](int rank, ncclComm_t comm, ncclComm_t grown) {
    int own = -1, size = 0;
    NCCL_OK(ncclCommUserRank(grown, &own));
    NCCL_OK(ncclCommCount(grown, &size));
    EXPECT_EQ(own, rank);
    EXPECT_EQ(size, 3);
    int value = rank;
    NCCL_OK(ncclAllReduce(&value, &value, 1, ncclInt, ncclSum, grown, noStream));
    EXPECT_EQ(value, 101);
    // The old one goes on.
    value = rank;
    NCCL_OK(ncclAllReduce(&value, &value, 1, ncclInt, ncclSum, comm, noStream));
    EXPECT_EQ(value, 1);
    ncclComm_t again = nullptr;
    EXPECT_EQ(ncclCommGrow(comm, 2, nullptr, -1, &again, nullptr), ncclInvalidArgument);
    EXPECT_EQ(ncclCommGrow(comm, 3, nullptr, rank, &again, nullptr), ncclInvalidArgument);
  };
  growByOne(true, old, joins);
}

// Where it was made it is known.
TEST(Grown, TheOldRanksNeedNotPassTheId) {
  growByOne(
      false, [](int, ncclComm_t, ncclComm_t) {}, [](ncclComm_t) {});
}

TEST(Grown, WithoutAnIdIsRefusedOnAllRanks) {
  withRanks(2, [](int, ncclComm_t comm) {
    ncclComm_t grown = nullptr;
    EXPECT_EQ(ncclCommGrow(comm, 3, nullptr, -1, &grown, nullptr), ncclInvalidUsage);
    EXPECT_THAT(ncclGetLastError(nullptr), HasSubstr("no rank of comm gave an id"));
    EXPECT_EQ(ncclCommGrow(nullptr, 3, nullptr, 2, &grown, nullptr), ncclInvalidArgument);
  });
}

TEST(Window, KnowsTheAddressThatWasRegistered) {
  const Communicator comm{alone()};
  void* memory = nullptr;
  NCCL_OK(ncclMemAlloc(&memory, 8192));
  ncclWindow_t window = nullptr;
  NCCL_OK(ncclCommWindowRegister(comm.handle, memory, 8192, &window, NCCL_WIN_DEFAULT));
  void* found = nullptr;
  NCCL_OK(ncclWinGetUserPtr(comm.handle, window, &found));
  EXPECT_EQ(found, memory);
  NCCL_OK(ncclCommWindowDeregister(comm.handle, window));
  EXPECT_EQ(ncclWinGetUserPtr(comm.handle, window, &found), ncclInvalidUsage);
  NCCL_OK(ncclMemFree(memory));
}

TEST(Parameters, AreReadByTheirNames) {
  inFreshChild({{"NCCL_BUFFSIZE", "1048576"}, {"NCCL_FALCON_MITIGATE", "advise"}}, [] {
    ncclParamHandle_t handle = nullptr;
    NCCL_OK(ncclParamBind(&handle, "NCCL_BUFFSIZE"));
    int32_t narrow = 0;
    int64_t wide = 0;
    int8_t tiny = 5;
    NCCL_OK(ncclParamGetI32(handle, &narrow));
    NCCL_OK(ncclParamGetI64(handle, &wide));
    EXPECT_EQ(narrow, 1048576);
    EXPECT_EQ(wide, 1048576);
    EXPECT_EQ(ncclParamGetI8(handle, &tiny), ncclInvalidArgument);
    EXPECT_EQ(tiny, 5);
    EXPECT_THAT(ncclGetLastError(nullptr), HasSubstr("NCCL_BUFFSIZE is '1048576', which does not fit"));
    const char* text = nullptr;
    NCCL_OK(ncclParamBind(&handle, "NCCL_FALCON_MITIGATE"));
    NCCL_OK(ncclParamGetStr(handle, &text));
    EXPECT_STREQ(text, "advise");
    char bytes[16] = {};
    int length = 0;
    NCCL_OK(ncclParamGet(handle, bytes, sizeof bytes, &length));
    EXPECT_STREQ(bytes, "advise");
    EXPECT_EQ(length, 7);
    EXPECT_EQ(ncclParamGet(handle, bytes, 3, &length), ncclInvalidArgument);
    NCCL_OK(ncclParamGetParameter("NCCL_FALCON", &text, &length));
    EXPECT_STREQ(text, "0");
    EXPECT_EQ(ncclParamBind(&handle, "NCCL_NO_SUCH"), ncclInvalidArgument);
    EXPECT_EQ(ncclParamGetI32(reinterpret_cast<ncclParamHandle_t>(&bytes), &narrow), ncclInvalidArgument);
    const char** keys = nullptr;
    int count = 0;
    NCCL_OK(ncclParamGetAllParameterKeys(&keys, &count));
    EXPECT_GT(count, 30);
    int found = 0;
    for (int i = 0; i < count; ++i) found += std::string(keys[i]) == "NCCL_FALCON_MITIGATE";
    EXPECT_EQ(found, 1);
  });
}

TEST(Encryption, IsRefusedOnHostMemory) {
  const ncclEncryptionConfig_t encryption = NCCL_ENCRYPTION_CONFIG_INITIALIZER;
  EXPECT_EQ(ncclSetEncryption(&encryption), ncclInvalidUsage);
}

}  // namespace
}  // namespace falcon::abi
