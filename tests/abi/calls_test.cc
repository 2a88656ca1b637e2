// What each function answers to right and wrong arguments.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <climits>
#include <cstring>

#include "abi/ranks.h"

namespace falcon::abi {
namespace {

using testing::HasSubstr;

ncclComm_t bogus() {
  static char memory[4096] = {};
  return reinterpret_cast<ncclComm_t>(memory);
}

float in[8], out[8];

TEST(Version, IsNccl2289) {
  int version = 0;
  NCCL_OK(ncclGetVersion(&version));
  EXPECT_EQ(version, 23203);
  EXPECT_EQ(pncclGetVersion(nullptr), ncclInvalidArgument);
  NCCL_OK(ncclFalconGetVersion(&version));
  EXPECT_EQ(version, NCCL_FALCON_API_VERSION);
}

TEST(ErrorString, IsThereForEveryCodeAndDiffers) {
  std::vector<std::string> texts;
  for (int code = 0; code <= ncclNumResults; ++code) {
    const char* text = ncclGetErrorString(static_cast<ncclResult_t>(code));
    ASSERT_NE(text, nullptr);
    for (const std::string& other : texts) EXPECT_NE(other, text);
    texts.push_back(text);
  }
  EXPECT_STREQ(ncclGetErrorString(static_cast<ncclResult_t>(-1)), ncclGetErrorString(ncclNumResults));
}

/// Every function that takes a communicator, as a call that gives its result.
struct OnCommunicator {
  const char* name;
  std::function<ncclResult_t(ncclComm_t)> call;
};
std::vector<OnCommunicator> allOnCommunicator() {
  static int number;
  static ncclResult_t state;
  static ncclRedOp_t op;
  static ncclComm_t child;
  static void* handle;
  static ncclWindow_t window;
  static ncclFalconLayout_t layout{sizeof layout, 1, 1, 1, 0, 0, 0, 1};
  static ncclFalconPlan_t plan{};
  plan.size = sizeof plan;
  return {
      {"ncclCommCount", [](ncclComm_t c) { return ncclCommCount(c, &number); }},
      {"ncclCommCuDevice", [](ncclComm_t c) { return ncclCommCuDevice(c, &number); }},
      {"ncclCommUserRank", [](ncclComm_t c) { return ncclCommUserRank(c, &number); }},
      {"ncclCommGetAsyncError", [](ncclComm_t c) { return ncclCommGetAsyncError(c, &state); }},
      {"ncclCommSplit", [](ncclComm_t c) { return ncclCommSplit(c, 0, 0, &child, nullptr); }},
      {"ncclCommShrink", [](ncclComm_t c) { return ncclCommShrink(c, nullptr, 0, &child, nullptr, 0); }},
      {"ncclCommRegister", [](ncclComm_t c) { return ncclCommRegister(c, in, sizeof in, &handle); }},
      {"ncclCommDeregister", [](ncclComm_t c) { return ncclCommDeregister(c, nullptr); }},
      {"ncclCommWindowRegister", [](ncclComm_t c) { return ncclCommWindowRegister(c, in, sizeof in, &window, 0); }},
      {"ncclCommWindowDeregister", [](ncclComm_t c) { return ncclCommWindowDeregister(c, nullptr); }},
      {"ncclRedOpCreatePreMulSum",
       [](ncclComm_t c) { return ncclRedOpCreatePreMulSum(&op, in, ncclFloat, ncclScalarHostImmediate, c); }},
      {"ncclFalconRedOpCreateBitwise",
       [](ncclComm_t c) { return ncclFalconRedOpCreateBitwise(&op, ncclFalconBitwiseOr, ncclInt, c); }},
      {"ncclRedOpDestroy", [](ncclComm_t c) { return ncclRedOpDestroy(op, c); }},
      {"ncclAllReduce", [](ncclComm_t c) { return ncclAllReduce(in, out, 8, ncclFloat, ncclSum, c, noStream); }},
      {"ncclBroadcast", [](ncclComm_t c) { return ncclBroadcast(in, out, 8, ncclFloat, 0, c, noStream); }},
      {"ncclBcast", [](ncclComm_t c) { return ncclBcast(out, 8, ncclFloat, 0, c, noStream); }},
      {"ncclReduce", [](ncclComm_t c) { return ncclReduce(in, out, 8, ncclFloat, ncclSum, 0, c, noStream); }},
      {"ncclAllGather", [](ncclComm_t c) { return ncclAllGather(in, out, 8, ncclFloat, c, noStream); }},
      {"ncclReduceScatter",
       [](ncclComm_t c) { return ncclReduceScatter(in, out, 8, ncclFloat, ncclSum, c, noStream); }},
      {"ncclAlltoAll", [](ncclComm_t c) { return ncclAlltoAll(in, out, 8, ncclFloat, c, noStream); }},
      {"ncclGather", [](ncclComm_t c) { return ncclGather(in, out, 8, ncclFloat, 0, c, noStream); }},
      {"ncclScatter", [](ncclComm_t c) { return ncclScatter(in, out, 8, ncclFloat, 0, c, noStream); }},
      {"ncclSend", [](ncclComm_t c) { return ncclSend(in, 8, ncclFloat, 0, c, noStream); }},
      {"ncclRecv", [](ncclComm_t c) { return ncclRecv(out, 8, ncclFloat, 0, c, noStream); }},
      {"ncclFalconRegisterLayout", [](ncclComm_t c) { return ncclFalconRegisterLayout(c, &layout); }},
      {"ncclFalconIterationBegin", [](ncclComm_t c) { return ncclFalconIterationBegin(c, 0, &plan); }},
  };
}

TEST(Communicator, NullAndCorruptOnesAreRefusedEverywhere) {
  for (const auto& [name, call] : allOnCommunicator()) {
    EXPECT_EQ(call(nullptr), ncclInvalidArgument) << name;
    EXPECT_THAT(ncclGetLastError(nullptr), HasSubstr("comm is NULL")) << name;
    EXPECT_THAT(ncclGetLastError(nullptr), HasSubstr(name));
    EXPECT_EQ(call(bogus()), ncclInvalidArgument) << name;
    EXPECT_THAT(ncclGetLastError(nullptr), HasSubstr("not a communicator")) << name;
  }
  for (const auto call : {ncclCommFinalize, ncclCommDestroy, ncclCommAbort}) {
    EXPECT_EQ(call(nullptr), ncclSuccess);
    EXPECT_EQ(call(bogus()), ncclInvalidArgument);
  }
  EXPECT_EQ(ncclCommRevoke(nullptr, 0), ncclSuccess);
  EXPECT_EQ(ncclCommRevoke(bogus(), 0), ncclInvalidArgument);
}

TEST(Init, RefusesWhatCannotBe) {
  ncclUniqueId id;
  NCCL_OK(ncclGetUniqueId(&id));
  ncclComm_t comm = nullptr;
  EXPECT_EQ(ncclCommInitRank(nullptr, 1, id, 0), ncclInvalidArgument);
  EXPECT_EQ(ncclCommInitRank(&comm, 0, id, 0), ncclInvalidArgument);
  EXPECT_EQ(ncclCommInitRank(&comm, -1, id, 0), ncclInvalidArgument);
  EXPECT_EQ(ncclCommInitRank(&comm, 2, id, 2), ncclInvalidArgument);
  EXPECT_EQ(ncclCommInitRank(&comm, 2, id, -1), ncclInvalidArgument);
  ncclUniqueId strange;
  std::memset(&strange, 0x5a, sizeof strange);
  EXPECT_EQ(ncclCommInitRank(&comm, 1, strange, 0), ncclInvalidArgument);
  EXPECT_EQ(ncclCommInitRankScalable(&comm, 1, 0, 0, &id, nullptr), ncclInvalidArgument);
  EXPECT_EQ(ncclCommInitRankScalable(&comm, 1, 0, 1, nullptr, nullptr), ncclInvalidArgument);
  EXPECT_EQ(ncclCommInitAll(&comm, 0, nullptr), ncclInvalidArgument);
  EXPECT_EQ(ncclCommInitAll(nullptr, 1, nullptr), ncclInvalidArgument);
  const int twice[] = {0, 0};
  ncclComm_t two[2];
  EXPECT_EQ(ncclCommInitAll(two, 2, twice), ncclInvalidUsage);
  EXPECT_EQ(ncclGetUniqueId(nullptr), ncclInvalidArgument);
  EXPECT_EQ(comm, nullptr);
}

TEST(Config, IsReadByItsVersionAndSize) {
  ncclUniqueId id;
  NCCL_OK(ncclGetUniqueId(&id));
  const auto result = [&](ncclConfig_t config) {
    Communicator comm;
    return ncclCommInitRankConfig(&comm.handle, 1, id, 0, &config);
  };
  const ncclConfig_t good = NCCL_CONFIG_INITIALIZER;
  EXPECT_EQ(result(good), ncclSuccess);

  ncclConfig_t config = good;
  config.magic = 0;
  EXPECT_EQ(result(config), ncclInvalidArgument);
  config = good, config.size = 4;
  EXPECT_EQ(result(config), ncclInvalidArgument);
  config = good, config.blocking = 2;
  EXPECT_EQ(result(config), ncclInvalidArgument);
  config = good, config.minCTAs = 9, config.maxCTAs = 3;
  EXPECT_EQ(result(config), ncclInvalidArgument);
  EXPECT_THAT(ncclGetLastError(nullptr), HasSubstr("minCTAs"));

  // Every field, just outside of what it may be.
  struct Field {
    const char* name;
    int ncclConfig_t::*member;
    int bad;
    unsigned since;
  };
  for (const Field& field : {Field{"blocking", &ncclConfig_t::blocking, -1, 21400},
                             {"cgaClusterSize", &ncclConfig_t::cgaClusterSize, -1, 21700},
                             {"minCTAs", &ncclConfig_t::minCTAs, 0, 21700},
                             {"maxCTAs", &ncclConfig_t::maxCTAs, 0, 21700},
                             {"splitShare", &ncclConfig_t::splitShare, 2, 21800},
                             {"collnetEnable", &ncclConfig_t::collnetEnable, 2, 22700},
                             {"CTAPolicy", &ncclConfig_t::CTAPolicy, 4, 22700},
                             {"shrinkShare", &ncclConfig_t::shrinkShare, 2, 22700},
                             {"nvlsCTAs", &ncclConfig_t::nvlsCTAs, 0, 22700},
                             {"nChannelsPerNetPeer", &ncclConfig_t::nChannelsPerNetPeer, 0, 22800},
                             {"nChannelsPerNetPeer", &ncclConfig_t::nChannelsPerNetPeer, 65, 22800},
                             {"nvlinkCentricSched", &ncclConfig_t::nvlinkCentricSched, 2, 22800},
                             {"graphUsageMode", &ncclConfig_t::graphUsageMode, 3, 22900},
                             {"numRmaCtx", &ncclConfig_t::numRmaCtx, -1, 22900},
                             {"maxP2pPeers", &ncclConfig_t::maxP2pPeers, 0, 23000},
                             {"graphStreamOrdering", &ncclConfig_t::graphStreamOrdering, 2, 23005},
                             {"launchOrderImplicit", &ncclConfig_t::launchOrderImplicit, 3, 23100},
                             {"numRmaSig", &ncclConfig_t::numRmaSig, -1, 23100},
                             {"rmaEagerInit", &ncclConfig_t::rmaEagerInit, 2, 23100},
                             {"hostCftMode", &ncclConfig_t::hostCftMode, 4, 23100},
                             {"nvlsHostMode", &ncclConfig_t::nvlsHostMode, 3, 23200}}) {
    config = good, config.*field.member = field.bad;
    EXPECT_EQ(result(config), ncclInvalidArgument) << field.name;
    EXPECT_THAT(ncclGetLastError(nullptr), HasSubstr(std::string("config.") + field.name));
    // A program of the version before does not have the field.
    config.version = field.since - 100;
    EXPECT_EQ(result(config), ncclSuccess) << field.name;
  }

  // A program of 2.14 knows nothing of what follows `blocking`: rubbish there is not read.
  config = good, config.version = 21400, config.minCTAs = -7, config.commName = reinterpret_cast<const char*>(1);
  EXPECT_EQ(result(config), ncclSuccess);
  config = good, config.size = offsetof(ncclConfig_t, splitShare), config.splitShare = 77;
  EXPECT_EQ(result(config), ncclSuccess);
  // A later library's structure may be longer.
  config = good, config.size = sizeof config + 16, config.version = 22907;
  EXPECT_EQ(result(config), ncclSuccess);
}

TEST(Arguments, OutOfRangeAreRefusedBeforeAnythingHappens) {
  const Communicator comm{alone()};
  const auto c = comm.handle;
  for (const int type : {-1, 12, INT_MAX})
    EXPECT_EQ(ncclAllReduce(in, out, 8, static_cast<ncclDataType_t>(type), ncclSum, c, noStream), ncclInvalidArgument)
        << type;
  for (const int op : {-1, 5, INT_MAX})
    EXPECT_EQ(ncclAllReduce(in, out, 8, ncclFloat, static_cast<ncclRedOp_t>(op), c, noStream), ncclInvalidArgument)
        << op;
  for (const int peer : {-1, 1, INT_MAX, INT_MIN}) {
    EXPECT_EQ(ncclBroadcast(in, out, 8, ncclFloat, peer, c, noStream), ncclInvalidArgument) << peer;
    EXPECT_EQ(ncclReduce(in, out, 8, ncclFloat, ncclSum, peer, c, noStream), ncclInvalidArgument) << peer;
    EXPECT_EQ(ncclGather(in, out, 8, ncclFloat, peer, c, noStream), ncclInvalidArgument) << peer;
    EXPECT_EQ(ncclScatter(in, out, 8, ncclFloat, peer, c, noStream), ncclInvalidArgument) << peer;
    EXPECT_EQ(ncclSend(in, 8, ncclFloat, peer, c, noStream), ncclInvalidArgument) << peer;
    EXPECT_EQ(ncclRecv(out, 8, ncclFloat, peer, c, noStream), ncclInvalidArgument) << peer;
  }
  EXPECT_EQ(ncclAllReduce(nullptr, out, 8, ncclFloat, ncclSum, c, noStream), ncclInvalidArgument);
  EXPECT_EQ(ncclAllReduce(in, nullptr, 8, ncclFloat, ncclSum, c, noStream), ncclInvalidArgument);
  EXPECT_EQ(ncclAllReduce(in, out, SIZE_MAX / 4, ncclFloat, ncclSum, c, noStream), ncclInvalidArgument);
  EXPECT_EQ(ncclAllReduce(nullptr, nullptr, 0, ncclFloat, ncclSum, c, noStream), ncclSuccess) << ncclGetLastError(c);
  EXPECT_EQ(ncclCommCount(c, nullptr), ncclInvalidArgument);
}

TEST(Communicator, KnowsItself) {
  withRanks(3, [](int rank, ncclComm_t comm) {
    int value = -1;
    NCCL_OK(ncclCommUserRank(comm, &value));
    EXPECT_EQ(value, rank);
    NCCL_OK(ncclCommCount(comm, &value));
    EXPECT_EQ(value, 3);
    ncclResult_t state = ncclInternalError;
    NCCL_OK(ncclCommGetAsyncError(comm, &state));
    EXPECT_EQ(state, ncclSuccess);
  });
}

TEST(Communicator, TakesNoWorkAfterFinalize) {
  const Communicator comm{alone()};
  NCCL_OK(ncclCommFinalize(comm.handle));
  EXPECT_EQ(ncclCommFinalize(comm.handle), ncclInvalidArgument);
  EXPECT_EQ(ncclAllReduce(in, out, 8, ncclFloat, ncclSum, comm.handle, noStream), ncclInvalidUsage);
}

TEST(Communicator, SplitsByColorAndKey) {
  withRanks(4, [](int rank, ncclComm_t comm) {
    Communicator child;
    NCCL_OK(ncclCommSplit(comm, rank == 3 ? NCCL_SPLIT_NOCOLOR : 0, -rank, &child.handle, nullptr));
    if (rank == 3) {
      EXPECT_EQ(child.handle, nullptr);
      return;
    }
    int value = -1;
    NCCL_OK(ncclCommCount(child.handle, &value));
    EXPECT_EQ(value, 3);
    NCCL_OK(ncclCommUserRank(child.handle, &value));
    EXPECT_EQ(value, 2 - rank);
  });
}

TEST(Unsupported, NeverSaysSuccessAndSaysWhy) {
  const Communicator comm{alone()};
  const std::pair<const char*, ncclResult_t> results[] = {
      {"DevCommCreate", ncclDevCommCreate(comm.handle, nullptr, nullptr)},
      {"DevCommDestroy", ncclDevCommDestroy(comm.handle, nullptr)},
      {"LLA2ACreateRequirement", ncclLLA2ACreateRequirement(1, 1, nullptr, nullptr)},
  };
  for (const auto& [name, result] : results) EXPECT_EQ(result, ncclInvalidUsage) << name;
  EXPECT_EQ(ncclDevCommCreate(comm.handle, nullptr, nullptr), ncclInvalidUsage);
  EXPECT_THAT(ncclGetLastError(nullptr), HasSubstr("ncclDevCommCreate: this communicator moves host memory"));
}

TEST(DeviceApi, CountsSlotsOfEightBytes) {
  for (const int elements : {0, 1, 2, 8, 100})
    for (const int size : {1, 7, 8, 9, 16, 32})
      EXPECT_EQ(ncclLLA2ACalcSlots(elements, size), elements * ((size + 7) / 8)) << elements << " of " << size;
}

}  // namespace
}  // namespace falcon::abi
