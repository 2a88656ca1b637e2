// NCCL_FALCON_CHECK=1: ranks that do not call alike are told who differs, and in what, instead of hanging or computing
// nonsense.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "abi/ranks.h"

namespace falcon::abi {
namespace {

using testing::AnyOf;
using testing::HasSubstr;

struct Misuse {
  const char* name;
  /// What rank 1 calls, and what the others do.
  std::function<ncclResult_t(void*data, ncclComm_t comm)> wrong, right;
  const char* said;  ///< on every rank
};

const Misuse misuses[] = {
    {"Count",
     [](void* data, ncclComm_t comm) { return ncclAllReduce(data, data, 6, ncclFloat, ncclSum, comm, noStream); },
     [](void* data, ncclComm_t comm) { return ncclAllReduce(data, data, 5, ncclFloat, ncclSum, comm, noStream); },
     "collective 1 of the communicator is ncclAllReduce of 6 float (sum) on rank 1, but ncclAllReduce of 5 float (sum) "
     "on rank 0"},
    // One side would post its few bytes where the others look for an address, or use a connection.
    {"LargeAgainstSmall",
     [](void* data, ncclComm_t comm) { return ncclAllGather(data, data, 10, ncclChar, comm, noStream); },
     [](void* data, ncclComm_t comm) { return ncclAllGather(data, data, 1'000'000, ncclChar, comm, noStream); },
     "ncclAllGather of 10 int8 on rank 1, but ncclAllGather of 1000000 int8 on rank 0"},
    {"NothingAgainstSomething",
     [](void* data, ncclComm_t comm) { return ncclAllReduce(data, data, 0, ncclFloat, ncclSum, comm, noStream); },
     [](void* data, ncclComm_t comm) { return ncclAllReduce(data, data, 5, ncclFloat, ncclSum, comm, noStream); },
     "ncclAllReduce of 0 float (sum) on rank 1, but ncclAllReduce of 5 float (sum) on rank 0"},
    // The same bytes.
    {"Type", [](void* data, ncclComm_t comm) { return ncclAllReduce(data, data, 5, ncclInt, ncclSum, comm, noStream); },
     [](void* data, ncclComm_t comm) { return ncclAllReduce(data, data, 5, ncclFloat, ncclSum, comm, noStream); },
     "ncclAllReduce of 5 int32 (sum) on rank 1, but ncclAllReduce of 5 float (sum) on rank 0"},
    {"Reduction",
     [](void* data, ncclComm_t comm) { return ncclAllReduce(data, data, 5, ncclFloat, ncclMax, comm, noStream); },
     [](void* data, ncclComm_t comm) { return ncclAllReduce(data, data, 5, ncclFloat, ncclSum, comm, noStream); },
     "ncclAllReduce of 5 float (max) on rank 1, but ncclAllReduce of 5 float (sum) on rank 0"},
    {"Root", [](void* data, ncclComm_t comm) { return ncclBroadcast(data, data, 5, ncclFloat, 1, comm, noStream); },
     [](void* data, ncclComm_t comm) { return ncclBroadcast(data, data, 5, ncclFloat, 0, comm, noStream); },
     "ncclBroadcast of 5 float with root 1 on rank 1, but ncclBroadcast of 5 float with root 0 on rank 0"},
    {"Operation",
     [](void* data, ncclComm_t comm) { return ncclReduce(data, data, 5, ncclFloat, ncclSum, 0, comm, noStream); },
     [](void* data, ncclComm_t comm) { return ncclAllReduce(data, data, 5, ncclFloat, ncclSum, comm, noStream); },
     "ncclReduce of 5 float (sum) with root 0 on rank 1, but ncclAllReduce of 5 float (sum) on rank 0"},
    {"OrderInAGroup",
     [](void* data, ncclComm_t comm) {
       ncclGroupStart();
       ncclBroadcast(data, data, 5, ncclFloat, 0, comm, noStream);
       ncclAllReduce(data, data, 5, ncclFloat, ncclSum, comm, noStream);
       return ncclGroupEnd();
     },
     [](void* data, ncclComm_t comm) {
       ncclGroupStart();
       ncclAllReduce(data, data, 5, ncclFloat, ncclSum, comm, noStream);
       ncclBroadcast(data, data, 5, ncclFloat, 0, comm, noStream);
       return ncclGroupEnd();
     },
     "collective 1 of the communicator is ncclBroadcast of 5 float with root 0 on rank 1, but ncclAllReduce of 5 float "
     "(sum) on rank 0"}};

class CheckedCalls : public testing::TestWithParam<std::tuple<Misuse, const char*>> {};

TEST_P(CheckedCalls, WhoDiffersIsNamedOnEveryRank) {
  const auto& [misuse, transport] = GetParam();
  inFreshChild({{"NCCL_FALCON_CHECK", "1"}, {transport, "1"}}, [&misuse = misuse] {
    withRanks(3, [&](int rank, ncclComm_t comm) {
      std::vector<float> data(1'000'000, 1);
      NCCL_OK(ncclAllReduce(data.data(), data.data(), 20, ncclFloat, ncclSum, comm, noStream));
      const ncclResult_t result = (rank == 1 ? misuse.wrong : misuse.right)(data.data(), comm);
      EXPECT_THAT(result, AnyOf(ncclInvalidUsage, ncclRemoteError));
      EXPECT_THAT(ncclGetLastError(comm), HasSubstr(misuse.said));
    });
  });
}

INSTANTIATE_TEST_SUITE_P(Misuses, CheckedCalls,
                         testing::Combine(testing::ValuesIn(misuses),
                                          testing::Values("NCCL_P2P_DISABLE", "NCCL_SHM_DISABLE", "NCCL_FALCON_CHECK")),
                         [](const auto& instance) {
                           const std::string variable = std::get<1>(instance.param);
                           return std::string(std::get<0>(instance.param).name) +
                                  (variable == "NCCL_P2P_DISABLE"   ? "SharedMemory"
                                   : variable == "NCCL_SHM_DISABLE" ? "Sockets"
                                                                    : "Default");
                         });

}  // namespace
}  // namespace falcon::abi
