// The library over the fake vendor library: what a program calls is what the vendor is asked.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

#include "abi/ranks.h"
#include "harness/fakes.h"
#include "harness/in_time.h"

namespace falcon::abi {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;
using testing::UnorderedElementsAre;

using Environment = std::vector<std::pair<const char*, std::string>>;
const Environment onVendor = {{"NCCL_FALCON_ENGINE", "vendor"}, {"NCCL_FALCON_VENDOR_LIBRARY", FALCON_FAKE_VENDOR}};

const void* const in = reinterpret_cast<const void*>(0x1000);
void* const out = reinterpret_cast<void*>(0x2000);
const cudaStream_t stream = reinterpret_cast<cudaStream_t>(0x5);

TEST(VendorEngine, EveryBasicOperationArrivesWithTheSameArguments) {
  for (const char* falcon : {"0", "1"}) {
    Environment environment = onVendor;
    environment.push_back({"NCCL_FALCON", falcon});
    inFreshChild(environment, [] {
      const Communicator comm{alone()};
      harness::FakeVendor vendor(FALCON_FAKE_VENDOR);
      vendor.takeLog();
      NCCL_OK(ncclAllReduce(in, out, 11, ncclBfloat16, ncclMax, comm.handle, stream));
      NCCL_OK(ncclBroadcast(in, out, 12, ncclFloat, 0, comm.handle, stream));
      NCCL_OK(ncclBcast(out, 13, ncclHalf, 0, comm.handle, stream));
      NCCL_OK(ncclReduce(in, out, 14, ncclDouble, ncclAvg, 0, comm.handle, stream));
      NCCL_OK(ncclAllGather(in, out, 15, ncclInt8, comm.handle, stream));
      NCCL_OK(ncclReduceScatter(in, out, 16, ncclUint64, ncclProd, comm.handle, stream));
      NCCL_OK(ncclSend(in, 17, ncclInt32, 0, comm.handle, stream));
      NCCL_OK(ncclRecv(out, 18, ncclFloat8e5m2, 0, comm.handle, stream));
      EXPECT_THAT(vendor.takeLog(),
                  ElementsAre("AllReduce 0x1000 0x2000 11 9 2 0x5", "Broadcast 0x1000 0x2000 12 7 root=0 0x5",
                              "Broadcast 0x2000 0x2000 13 6 root=0 0x5", "Reduce 0x1000 0x2000 14 8 4 root=0 0x5",
                              "AllGather 0x1000 0x2000 15 0 0x5", "ReduceScatter 0x1000 0x2000 16 5 1 0x5",
                              "Send 0x1000 17 2 peer=0 0x5", "Recv 0x2000 18 11 peer=0 0x5"));
      NCCL_OK(ncclGroupStart());
      NCCL_OK(ncclSend(in, 1, ncclInt8, 0, comm.handle, stream));
      EXPECT_THAT(vendor.takeLog(), IsEmpty());
      NCCL_OK(ncclRecv(out, 1, ncclInt8, 0, comm.handle, stream));
      NCCL_OK(ncclGroupEnd());
      EXPECT_THAT(vendor.takeLog(),
                  ElementsAre("GroupStart", "Send 0x1000 1 0 peer=0 0x5", "Recv 0x2000 1 0 peer=0 0x5", "GroupEnd"));
    });
  }
}

TEST(VendorEngine, UserOpsAreTheVendorsAndOutliveTheGroupThatUsesThem) {
  inFreshChild(onVendor, [] {
    const Communicator comm{alone()};
    harness::FakeVendor vendor(FALCON_FAKE_VENDOR);
    vendor.takeLog();
    void* const scalar = reinterpret_cast<void*>(0x3000);
    ncclRedOp_t op;
    NCCL_OK(ncclRedOpCreatePreMulSum(&op, scalar, ncclFloat, ncclScalarDevice, comm.handle));
    EXPECT_THAT(vendor.takeLog(), ElementsAre("RedOpCreatePreMulSum 0x3000 7 0"));
    NCCL_OK(ncclGroupStart());
    NCCL_OK(ncclAllReduce(in, out, 4, ncclFloat, op, comm.handle, stream));
    NCCL_OK(ncclRedOpDestroy(op, comm.handle));
    EXPECT_THAT(vendor.takeLog(), IsEmpty());
    NCCL_OK(ncclGroupEnd());
    EXPECT_THAT(vendor.takeLog(), ElementsAre("AllReduce 0x1000 0x2000 4 7 77 0x5", "RedOpDestroy 77"));
    EXPECT_EQ(ncclAllReduce(in, out, 4, ncclFloat, op, comm.handle, stream), ncclInvalidArgument);
    vendor.fail(ncclUnhandledCudaError);
    EXPECT_EQ(ncclRedOpCreatePreMulSum(&op, scalar, ncclFloat, ncclScalarDevice, comm.handle), ncclUnhandledCudaError);
    vendor.fail(0);
  });
}

TEST(VendorEngine, MemoryAndRegistrationsAreTheVendors) {
  inFreshChild(onVendor, [] {
    const Communicator comm{alone()};
    harness::FakeVendor vendor(FALCON_FAKE_VENDOR);
    vendor.takeLog();
    void* memory = nullptr;
    NCCL_OK(ncclMemAlloc(&memory, 100));
    void* handle = nullptr;
    NCCL_OK(ncclCommRegister(comm.handle, memory, 100, &handle));
    ncclWindow_t window = nullptr;
    NCCL_OK(ncclCommWindowRegister(comm.handle, memory, 100, &window, NCCL_WIN_COLL_SYMMETRIC));
    void* address = nullptr;
    NCCL_OK(ncclWinGetUserPtr(comm.handle, window, &address));
    EXPECT_EQ(address, reinterpret_cast<void*>(0x9900)) << "the window's own communicator knows";
    NCCL_OK(ncclCommWindowDeregister(comm.handle, window));
    NCCL_OK(ncclCommDeregister(comm.handle, handle));
    NCCL_OK(ncclMemFree(memory));
    EXPECT_THAT(
        vendor.takeLog(),
        ElementsAre("MemAlloc 100", "CommRegister 0x7000 100", "CommWindowRegister 0x7000 100 1",
                    "WinGetUserPtr 0x9000", "CommWindowDeregister 0x9000", "CommDeregister 0x8000", "MemFree 0x7000"));
  });
}

// Else a wait for a signal waits for a put that this thread has yet to call, and a collective registration for the
// thread's other communicators.
TEST(VendorEngine, WhatIsPassedOnInAGroupIsInOneOfTheVendors) {
  inFreshChild(onVendor, [] {
    const Communicator comm{alone()};
    harness::FakeVendor vendor(FALCON_FAKE_VENDOR);
    vendor.takeLog();
    const auto memory = reinterpret_cast<void*>(0x7000);
    ncclWindow_t window = nullptr;
    NCCL_OK(ncclGroupStart());
    NCCL_OK(ncclCommWindowRegister(comm.handle, memory, 100, &window, NCCL_WIN_COLL_SYMMETRIC));
    NCCL_OK(ncclGroupEnd());
    EXPECT_EQ(window, reinterpret_cast<ncclWindow_t>(0x9000));
    EXPECT_THAT(vendor.takeLog(), ElementsAre("GroupStart", "CommWindowRegister 0x7000 100 1", "GroupEnd"));

    NCCL_OK(ncclGroupStart());
    NCCL_OK(ncclGroupStart());
    NCCL_OK(ncclPutSignal(in, 5, ncclInt, 0, window, 64, 1, 2, 3, comm.handle, stream));
    NCCL_OK(ncclGroupEnd());
    NCCL_OK(ncclAllReduce(in, out, 4, ncclFloat, ncclSum, comm.handle, stream));
    NCCL_OK(ncclCommSuspend(comm.handle, NCCL_SUSPEND_MEM));
    EXPECT_EQ(ncclGroupEnd(), ncclSuccess);
    EXPECT_THAT(vendor.takeLog(), ElementsAre("GroupStart", "PutSignal 0x1000 5 2 peer=0 0x9000 64 1 2 3 0x5",
                                              "CommSuspend 1", "AllReduce 0x1000 0x2000 4 7 0 0x5", "GroupEnd"));

    NCCL_OK(ncclGroupStart());
    NCCL_OK(ncclPutSignal(in, 5, ncclInt, 0, window, 64, 1, 2, 3, comm.handle, stream));
    EXPECT_EQ(ncclAllReduce(in, out, 4, ncclFloat, static_cast<ncclRedOp_t>(4711), comm.handle, stream),
              ncclInvalidArgument);
    EXPECT_EQ(ncclGroupEnd(), ncclInvalidArgument);
    EXPECT_THAT(vendor.takeLog(), ElementsAre("GroupStart", testing::StartsWith("PutSignal"), "GroupEnd"));

    NCCL_OK(ncclGroupStart());
    NCCL_OK(ncclPutSignal(in, 5, ncclInt, 0, window, 64, 1, 2, 3, comm.handle, stream));
    ncclSimInfo_t info = NCCL_SIM_INFO_INITIALIZER;
    NCCL_OK(ncclGroupSimulateEnd(&info));
    EXPECT_THAT(vendor.takeLog(), ElementsAre("GroupStart", testing::StartsWith("PutSignal"), "GroupSimulateEnd"));
    NCCL_OK(ncclPutSignal(in, 5, ncclInt, 0, window, 64, 1, 2, 3, comm.handle, stream));
    EXPECT_THAT(vendor.takeLog(), ElementsAre(testing::StartsWith("PutSignal")));
  });
}

TEST(VendorEngine, NewerFunctionsArePassedOn) {
  inFreshChild(onVendor, [] {
    const Communicator comm{alone()};
    harness::FakeVendor vendor(FALCON_FAKE_VENDOR);
    vendor.takeLog();
    ncclCollConfig_t config = NCCL_COLLCONFIG_INITIALIZER;
    config.maxCTAs = 3;
    config.userProfilerTag = 42;
    NCCL_OK(ncclAllReduceConfig(in, out, 11, ncclFloat, ncclMax, comm.handle, stream, &config));
    NCCL_OK(ncclReduceConfig(in, out, 12, ncclHalf, ncclMin, 0, comm.handle, stream, &config));
    NCCL_OK(ncclCommSuspend(comm.handle, NCCL_SUSPEND_MEM));
    uint64_t bytes = 0;
    NCCL_OK(ncclCommMemStats(comm.handle, ncclStatGpuMemTotal, &bytes));
    EXPECT_EQ(bytes, 4711u);
    const auto window = reinterpret_cast<ncclWindow_t>(0x9000);
    NCCL_OK(ncclPutSignal(in, 5, ncclInt, 0, window, 64, 1, 2, 3, comm.handle, stream));
    void* pointer = nullptr;
    NCCL_OK(ncclGetPeerDevicePointer(window, 128, 1, &pointer));
    EXPECT_EQ(pointer, reinterpret_cast<void*>(0xa000));
    const char* value = nullptr;
    int length = 0;
    NCCL_OK(ncclParamGetParameter("NCCL_ONLY_THE_VENDORS", &value, &length));
    EXPECT_STREQ(value, "the vendor's");
    EXPECT_THAT(vendor.takeLog(),
                ElementsAre("AllReduceConfig 0x1000 0x2000 11 7 2 0x5 maxCTAs=3 tag=42",
                            "ReduceConfig 0x1000 0x2000 12 6 3 root=0 0x5", "CommSuspend 1", "CommMemStats 3",
                            "PutSignal 0x1000 5 2 peer=0 0x9000 64 1 2 3 0x5", "GetPeerDevicePointer 0x9000 128 1",
                            "ParamGetParameter NCCL_ONLY_THE_VENDORS"));
    // It is of 2.28: what came later is not there.
    EXPECT_EQ(ncclSignal(0, 0, 0, 0, comm.handle, stream), ncclInvalidUsage);
    EXPECT_THAT(ncclGetLastError(nullptr), HasSubstr("ncclSignal is not in " FALCON_FAKE_VENDOR));
    EXPECT_EQ(ncclGatherConfig(in, out, 1, ncclInt, 0, comm.handle, stream, &config), ncclInvalidUsage);
    int version = 0;
    NCCL_OK(ncclGetVersion(&version));
    EXPECT_EQ(version, 22809) << "a program asks what the vendor can do";
  });
}

TEST(VendorEngine, LifeAndErrorsAreTheVendors) {
  inFreshChild(onVendor, [] {
    harness::FakeVendor vendor(FALCON_FAKE_VENDOR);
    ncclUniqueId id;
    NCCL_OK(ncclGetUniqueId(&id));
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.commName = "gradients";
    ncclComm_t comm = nullptr, child = nullptr;
    NCCL_OK(ncclCommInitRankConfig(&comm, 1, id, 0, &config));
    EXPECT_THAT(vendor.takeLog(),
                ElementsAre("GetUniqueId", "CommInitRankConfig size=1 rank=0 id=vv blocking=1 name=gradients"));
    int device = -1;
    NCCL_OK(ncclCommCuDevice(comm, &device));
    EXPECT_EQ(device, 3);

    NCCL_OK(ncclCommSplit(comm, 0, 4, &child, nullptr));
    EXPECT_THAT(vendor.takeLog(), ElementsAre("CommSplit color=0 key=4"));

    vendor.setAsyncError(ncclRemoteError);
    ncclResult_t state = ncclSuccess;
    NCCL_OK(ncclCommGetAsyncError(comm, &state));
    EXPECT_EQ(state, ncclRemoteError);
    vendor.setAsyncError(0);

    vendor.fail(ncclUnhandledCudaError);
    EXPECT_EQ(ncclAllReduce(in, out, 1, ncclFloat, ncclSum, comm, stream), ncclUnhandledCudaError);
    EXPECT_THAT(ncclGetLastError(comm), HasSubstr("fake detail"));
    vendor.fail(0);
    vendor.takeLog();

    NCCL_OK(ncclCommFinalize(child));
    NCCL_OK(ncclCommDestroy(child));
    NCCL_OK(ncclCommAbort(comm));
    EXPECT_THAT(vendor.takeLog(), ElementsAre("CommFinalize", "CommDestroy", "CommAbort"));
  });
}

// A program that is told of the failure must not try again: the handle is gone.
TEST(VendorEngine, TellsThatTheVendorCouldNotEndACommunicator) {
  for (const auto end : {ncclCommDestroy, ncclCommAbort})
    inFreshChild(onVendor, [end] {
      harness::FakeVendor vendor(FALCON_FAKE_VENDOR);
      const ncclComm_t comm = alone();
      vendor.takeLog();
      vendor.fail(ncclUnhandledCudaError);
      EXPECT_EQ(end(comm), ncclUnhandledCudaError);
      EXPECT_THAT(ncclGetLastError(nullptr), HasSubstr("fake detail"));
      vendor.fail(0);
      EXPECT_THAT(vendor.takeLog(), ElementsAre(end == ncclCommAbort ? "CommAbort" : "CommDestroy"));
    });
}

TEST(VendorEngine, WhatIsMadeOfACommunicatorHasTheConfigurationThatIsGivenForIt) {
  inFreshChild(onVendor, [] {
    harness::FakeVendor vendor(FALCON_FAKE_VENDOR);
    const Communicator comm{alone()};
    vendor.takeLog();
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.maxCTAs = 7;
    config.commName = "child";
    ncclComm_t child = nullptr;
    NCCL_OK(ncclCommSplit(comm.handle, 0, 4, &child, &config));
    NCCL_OK(ncclCommDestroy(child));
    NCCL_OK(ncclCommSplit(comm.handle, 0, 4, &child, nullptr));
    NCCL_OK(ncclCommDestroy(child));
    EXPECT_THAT(vendor.takeLog(), ElementsAre("CommSplit color=0 key=4 blocking=1 maxCTAs=7 name=child", "CommDestroy",
                                              "CommSplit color=0 key=4", "CommDestroy"));
  });
}

// Falcon's way to meet rides in the bytes that the vendor leaves zero, where Falcon is on.
TEST(VendorEngine, GrowsByTheVendorsId) {
  for (const bool on : {false, true}) {
    Environment environment = onVendor;
    environment.push_back({"NCCL_FALCON", on ? "1" : "0"});
    inFreshChild(environment, [on] {
      harness::FakeVendor vendor(FALCON_FAKE_VENDOR);
      const Communicator comm{alone()};
      vendor.takeLog();
      ncclUniqueId id;
      NCCL_OK(ncclCommGetUniqueId(comm.handle, &id));
      EXPECT_EQ(std::string(id.internal, 40), std::string(40, 'g'));
      const bool bare = std::all_of(id.internal + 40, std::end(id.internal), [](char byte) { return byte == 0; });
      EXPECT_EQ(bare, !on);
      ncclComm_t grown = nullptr, joined = nullptr;
      std::thread other([&] { NCCL_OK(ncclCommGrow(nullptr, 2, &id, 1, &joined, nullptr)); });
      NCCL_OK(ncclCommGrow(comm.handle, 2, &id, -1, &grown, nullptr));
      other.join();
      EXPECT_THAT(vendor.takeLog(), UnorderedElementsAre("CommGetUniqueId", "CommGrow member size=2 rank=-1 id=g",
                                                         StartsWith("CommGrow new size=2 rank=1 id=g blocking=1")));
      for (const ncclComm_t each : {grown, joined}) {
        int size = 0, rank = -1;
        NCCL_OK(ncclCommCount(each, &size));
        NCCL_OK(ncclCommUserRank(each, &rank));
        EXPECT_EQ(size, 2);
        EXPECT_EQ(rank, each == grown ? 0 : 1);
        // There is a job where it is watched, and that is not suspended.
        EXPECT_EQ(ncclFalconResume(each), ncclInvalidUsage);
        EXPECT_THAT(ncclGetLastError(each), HasSubstr(on ? "not suspended" : "Falcon is off"));
        NCCL_OK(ncclAllReduce(in, out, 1, ncclFloat, ncclSum, each, stream));
        NCCL_OK(ncclCommDestroy(each));
      }
    });
  }
}

// NCCL takes the id from nobody but who joins.
TEST(VendorEngine, GrowsWatchedWhereTheOldRanksPassNoId) {
  Environment environment = onVendor;
  environment.push_back({"NCCL_FALCON", "1"});
  inFreshChild(environment, [] {
    const Communicator comm{alone()};
    ncclUniqueId id;
    NCCL_OK(ncclCommGetUniqueId(comm.handle, &id));
    Communicator grown, joined;
    std::thread other([&] { NCCL_OK(ncclCommGrow(nullptr, 2, &id, 1, &joined.handle, nullptr)); });
    NCCL_OK(ncclCommGrow(comm.handle, 2, nullptr, -1, &grown.handle, nullptr));
    other.join();
    for (const ncclComm_t each : {grown.handle, joined.handle}) {
      EXPECT_EQ(ncclFalconResume(each), ncclInvalidUsage);
      EXPECT_THAT(ncclGetLastError(each), HasSubstr("not suspended"));
    }
  });
}

// What is said before anybody has asked for a device is on the host engine, whose log is the file that is named.
TEST(VendorEngine, HasTheLogFileForItselfOnceItIsLoaded) {
  const std::string path = testing::TempDir() + "falcon-vendor-log-" + std::to_string(getpid());
  Environment environment = onVendor;
  environment.insert(environment.end(), {{"NCCL_DEBUG", "INFO"}, {"NCCL_DEBUG_FILE", path}});
  inFreshChild(environment, [&] {
    const auto contentOf = [](const std::string& name) {
      std::ifstream file(name);
      return std::string(std::istreambuf_iterator<char>(file), {});
    };
    alignas(64) char none[1 << 14] = {};
    EXPECT_EQ(ncclCommDestroy(reinterpret_cast<ncclComm_t>(none)), ncclInvalidArgument);
    EXPECT_THAT(contentOf(path), HasSubstr("ncclCommDestroy: comm is not a communicator"));
    ncclUniqueId id;
    NCCL_OK(ncclGetUniqueId(&id));
    EXPECT_FALSE(std::filesystem::exists(path)) << "the vendor begins it";
    EXPECT_THAT(contentOf(path + ".falcon"), AllOf(HasSubstr("ncclCommDestroy: comm is not a communicator"),
                                                   HasSubstr("GPU engine: " FALCON_FAKE_VENDOR)));
  });
  std::filesystem::remove(path);
  std::filesystem::remove(path + ".falcon");
}

// The vendor's is made, and who of Falcon's ranks has not come then is not waited for until the init limit.
TEST(VendorEngine, ASplitWaitsForFalconsPartForAMomentOnly) {
  Environment environment = onVendor;
  environment.push_back({"NCCL_FALCON", "1"});
  inFreshChild(environment, [] {
    ncclUniqueId id;
    NCCL_OK(ncclGetUniqueId(&id));
    Communicator comms[2];
    const auto join = [&](int rank) { NCCL_OK(ncclCommInitRank(&comms[rank].handle, 2, id, rank)); };
    std::thread other(join, 1);
    join(0);
    other.join();
    const auto secondsOfSplit = [&] {
      const auto began = std::chrono::steady_clock::now();
      Communicator child;
      EXPECT_EQ(ncclCommSplit(comms[0].handle, 0, 0, &child.handle, nullptr), ncclSuccess);
      EXPECT_EQ(ncclFalconResume(child.handle), ncclInvalidUsage);
      EXPECT_THAT(ncclGetLastError(child.handle), HasSubstr("Falcon"));
      return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
    };
    EXPECT_LT(secondsOfSplit(), 10) << "the other rank's Falcon stays away";
    const auto again = [&] { return std::chrono::duration<double>(secondsOfSplit()); };
    EXPECT_TRUE(test::isInTime(std::chrono::seconds(2), again)) << "once that is known";
  });
}

TEST(VendorEngine, IsNotMadeWhereTheEnvironmentWouldMakeTheVendorsNonblocking) {
  Environment environment = onVendor;
  environment.push_back({"NCCL_COMM_BLOCKING", "0"});
  inFreshChild(environment, [] {
    ncclUniqueId id;
    NCCL_OK(ncclGetUniqueId(&id));
    ncclComm_t comm = nullptr;
    EXPECT_EQ(ncclCommInitRank(&comm, 1, id, 0), ncclInProgress);
    ncclResult_t state = ncclInProgress;
    while (state == ncclInProgress) NCCL_OK(ncclCommGetAsyncError(comm, &state));
    EXPECT_EQ(state, ncclInvalidUsage);
    EXPECT_EQ(ncclCommAbort(comm), ncclSuccess);
  });
}

TEST(VendorEngine, AllRanksOfACommunicatorHaveIt) {
  inFreshChild(onVendor, [] {
    harness::FakeVendor vendor(FALCON_FAKE_VENDOR);
    withRanks(3, [](int, ncclComm_t comm) { NCCL_OK(ncclAllReduce(in, out, 1, ncclFloat, ncclSum, comm, stream)); });
    const auto log = vendor.takeLog();
    for (const char* rank : {"rank=0", "rank=1", "rank=2"}) EXPECT_THAT(log, Contains(HasSubstr(rank)));
    EXPECT_THAT(log, Contains(StartsWith("AllReduce")).Times(3));
  });
}

// While it is made it is shown in the job's log, which goes with the job where that ends meanwhile.
TEST(VendorEngine, AFailedMakingIsTheVendorsErrorAndTheProgramGoesOn) {
  for (const char* falcon : {"0", "1"}) {
    Environment environment = onVendor;
    environment.push_back({"NCCL_FALCON", falcon});
    inFreshChild(environment, [] {
      harness::FakeVendor vendor(FALCON_FAKE_VENDOR);
      ncclUniqueId id;
      NCCL_OK(ncclGetUniqueId(&id));
      vendor.fail(ncclUnhandledCudaError);
      std::vector<std::thread> ranks;
      for (int rank = 0; rank < 2; ++rank)
        ranks.emplace_back([&, rank] {
          ncclComm_t comm = nullptr;
          EXPECT_NE(ncclCommInitRank(&comm, 2, id, rank), ncclSuccess);
          EXPECT_EQ(comm, nullptr);
        });
      for (auto& rank : ranks) rank.join();
      vendor.fail(0);
      const Communicator after{alone()};
      NCCL_OK(ncclAllReduce(in, out, 11, ncclBfloat16, ncclMax, after.handle, stream));
    });
  }
}

int threadCount() {
  return static_cast<int>(std::distance(std::filesystem::directory_iterator("/proc/self/task"), {}));
}

// The id says that the vendor's library moves the data: the ranks need not meet to agree on that.
TEST(VendorEngine, IsToldByTheVendorsIdWithoutANetworkOfOurs) {
  for (const bool on : {false, true}) {
    Environment environment = onVendor;
    environment.push_back({"NCCL_FALCON", on ? "1" : "0"});
    inFreshChild(environment, [on] {
      harness::FakeVendor vendor(FALCON_FAKE_VENDOR);
      const int threads = threadCount();
      ncclUniqueId id;
      NCCL_OK(ncclGetUniqueId(&id));
      EXPECT_EQ(std::string(id.internal, 40), std::string(40, 'v'));
      const bool bare = std::all_of(id.internal + 40, std::end(id.internal), [](char byte) { return byte == 0; });
      EXPECT_EQ(bare, !on);
      // Off, nobody waits for the other one, since nobody but the vendor's library could.
      ncclComm_t comms[2] = {};
      const auto join = [&](int rank) { NCCL_OK(ncclCommInitRank(&comms[rank], 2, id, rank)); };
      if (on) {
        std::thread other(join, 1);
        join(0);
        other.join();
      } else {
        join(0);
        join(1);
      }
      for (const ncclComm_t each : comms) {
        EXPECT_EQ(ncclFalconResume(each), ncclInvalidUsage);
        EXPECT_THAT(ncclGetLastError(each), HasSubstr(on ? "not suspended" : "Falcon is off"));
        NCCL_OK(ncclAllReduce(in, out, 1, ncclFloat, ncclSum, each, stream));
      }
      EXPECT_EQ(threadCount() > threads, on);
      for (const ncclComm_t each : comms) NCCL_OK(ncclCommDestroy(each));
    });
  }
}

// One that the vendor's own library has made, in another process, say: Falcon has no way to meet there.
TEST(VendorEngine, JoinsRanksOfTheVendorsOwnLibraryUnwatched) {
  Environment environment = onVendor;
  environment.push_back({"NCCL_FALCON", "1"});
  inFreshChild(environment, [] {
    harness::FakeVendor vendor(FALCON_FAKE_VENDOR);
    ncclUniqueId id{};
    std::fill_n(id.internal, 40, 'x');
    ncclComm_t comm = nullptr;
    NCCL_OK(ncclCommInitRank(&comm, 2, id, 1));
    EXPECT_THAT(vendor.takeLog(), ElementsAre(StartsWith("CommInitRankConfig size=2 rank=1 id=xx")));
    NCCL_OK(ncclAllReduce(in, out, 1, ncclFloat, ncclSum, comm, stream));
    NCCL_OK(ncclCommDestroy(comm));
  });
}

TEST(VendorEngine, SeveralIdsOfTheVendorsArePassedOn) {
  inFreshChild(onVendor, [] {
    harness::FakeVendor vendor(FALCON_FAKE_VENDOR);
    ncclUniqueId ids[3] = {};
    for (ncclUniqueId& each : ids) NCCL_OK(ncclGetUniqueId(&each));
    std::fill_n(ids[2].internal, 40, 'w');
    vendor.takeLog();
    ncclComm_t comm = nullptr;
    NCCL_OK(ncclCommInitRankScalable(&comm, 6, 4, 3, ids, nullptr));
    EXPECT_THAT(vendor.takeLog(),
                ElementsAre(StartsWith("CommInitRankScalable size=6 rank=4 ids=3 last=w blocking=1")));
    NCCL_OK(ncclCommDestroy(comm));
  });
}

TEST(VendorEngine, AnIdOfTheVendorsIsRefusedWithWordsWhereTheHostEngineIsWanted) {
  void* const shared = mmap(nullptr, sizeof(ncclUniqueId), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(shared, MAP_FAILED);
  auto& id = *static_cast<ncclUniqueId*>(shared);
  Environment environment = onVendor;
  environment.push_back({"NCCL_FALCON", "1"});
  inFreshChild(environment, [&] { NCCL_OK(ncclGetUniqueId(&id)); });
  inFreshChild({{"NCCL_FALCON_ENGINE", "host"}}, [&] {
    ncclComm_t comm = nullptr;
    EXPECT_EQ(ncclCommInitRank(&comm, 2, id, 1), ncclInvalidUsage);
    EXPECT_THAT(ncclGetLastError(nullptr), HasSubstr("NCCL_FALCON_ENGINE=host on all ranks"));
  });
  munmap(shared, sizeof(ncclUniqueId));
}

TEST(VendorEngine, IsNotTakenWhereTheIdIsOfHostMemory) {
  inFreshChild(onVendor, [] {
    harness::FakeVendor vendor(FALCON_FAKE_VENDOR);
    ncclUniqueId id;
    NCCL_OK(ncclFalconGetHostUniqueId(&id));
    const auto join = [&](int rank) {
      ncclComm_t comm = nullptr;
      NCCL_OK(ncclCommInitRank(&comm, 2, id, rank));
      int sum = rank + 1;
      NCCL_OK(ncclAllReduce(&sum, &sum, 1, ncclInt, ncclSum, comm, nullptr));
      EXPECT_EQ(sum, 3);
      NCCL_OK(ncclCommDestroy(comm));
    };
    std::thread other(join, 1);
    join(0);
    other.join();
    EXPECT_THAT(vendor.takeLog(), IsEmpty());
    EXPECT_EQ(ncclFalconGetHostUniqueId(nullptr), ncclInvalidArgument);
  });
}

// All processes make one by themselves there, and must make the same, whatever they know of GPUs.
TEST(VendorEngine, WithNcclCommIdTheIdIsOursAndTheRanksAgree) {
  Environment environment = onVendor;
  environment.push_back({"NCCL_COMM_ID", "127.0.0.1:1"});
  inFreshChild(environment, [] {
    harness::FakeVendor vendor(FALCON_FAKE_VENDOR);
    ncclUniqueId id, again;
    NCCL_OK(ncclGetUniqueId(&id));
    NCCL_OK(ncclGetUniqueId(&again));
    EXPECT_EQ(std::memcmp(&id, &again, sizeof id), 0);
    EXPECT_THAT(vendor.takeLog(), IsEmpty());
  });
}

TEST(VendorEngine, IsAutomaticWhereADriverShowsADevice) {
  inFreshChild({{"NCCL_FALCON_ENGINE", "auto"}, {"NCCL_FALCON_VENDOR_LIBRARY", FALCON_FAKE_VENDOR}}, [] {
    harness::FakeCuda driver(FALCON_FAKE_CUDA);
    harness::FakeVendor vendor(FALCON_FAKE_VENDOR);
    float device[4] = {}, host[4] = {1, 2, 3, 4}, sum[4] = {};
    driver.setDeviceMemory(device, sizeof device);
    const Communicator comm{alone()};
    EXPECT_THAT(vendor.takeLog(), Contains(StartsWith("CommInitRankConfig")));
    NCCL_OK(ncclAllReduce(device, device, 4, ncclFloat, ncclSum, comm.handle, nullptr));
    EXPECT_THAT(vendor.takeLog(), ElementsAre(StartsWith("AllReduce")));
    // What it thinks of host pointers is the vendor's to say.
    NCCL_OK(ncclAllReduce(host, sum, 4, ncclFloat, ncclSum, comm.handle, nullptr));
    EXPECT_THAT(vendor.takeLog(), ElementsAre(StartsWith("AllReduce")));
    EXPECT_THAT(sum, ElementsAre(0, 0, 0, 0));
  });
}

TEST(VendorEngine, WithoutADriverAutoIsTheHostEngine) {
  if (dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL)) GTEST_SKIP() << "this machine has a CUDA driver";
  inFreshChild({{"NCCL_FALCON_ENGINE", "auto"}, {"NCCL_FALCON_VENDOR_LIBRARY", FALCON_FAKE_VENDOR}}, [] {
    harness::FakeVendor vendor(FALCON_FAKE_VENDOR);
    const Communicator comm{alone()};
    EXPECT_THAT(vendor.takeLog(), IsEmpty());
  });
}

TEST(VendorEngine, AskedForButMissingIsAnErrorThatSaysWhy) {
  inFreshChild({{"NCCL_FALCON_ENGINE", "vendor"}, {"NCCL_FALCON_VENDOR_LIBRARY", "/nowhere/libnccl.so.2"}}, [] {
    ncclUniqueId id;
    NCCL_OK(ncclGetUniqueId(&id));
    ncclComm_t comm = nullptr;
    EXPECT_EQ(ncclCommInitRank(&comm, 1, id, 0), ncclInvalidUsage);
    EXPECT_THAT(ncclGetLastError(nullptr), HasSubstr("/nowhere/libnccl.so.2 does not exist"));
    EXPECT_EQ(comm, nullptr);
  });
}

}  // namespace
}  // namespace falcon::abi
