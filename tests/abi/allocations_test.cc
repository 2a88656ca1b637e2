// The call path through the C ABI allocates nothing once warm: malloc is counted in the thread that calls.
#include <cstddef>

#include "ranks.h"

extern "C" void* __libc_malloc(std::size_t);

namespace {
thread_local std::size_t allocations = 0;
}

// The library's own operator new ends here as well.
extern "C" void* malloc(std::size_t bytes) {
  ++allocations;
  return __libc_malloc(bytes);
}

namespace falcon::abi {
namespace {

TEST(Allocations, AreNoneInCallsAndGroupsOfMessagesOnceWarm) {
  setenv("NCCL_FALCON", "0", 1);
  constexpr int size = 2;
  std::size_t counted[size] = {};
  withRanks(size, [&](int rank, ncclComm_t& comm) {
    std::vector<float> out(1 << 16, 1), in(1 << 16);
    const auto callAll = [&] {
      for (const std::size_t count : {std::size_t{2}, std::size_t{2000}, out.size()}) {
        NCCL_OK(ncclAllReduce(out.data(), in.data(), count, ncclFloat, ncclSum, comm, nullptr));
        NCCL_OK(ncclGroupStart());
        NCCL_OK(ncclSend(out.data(), count, ncclFloat, 1 - rank, comm, nullptr));
        NCCL_OK(ncclRecv(in.data(), count, ncclFloat, 1 - rank, comm, nullptr));
        NCCL_OK(ncclGroupEnd());
      }
    };
    for (int round = 0; round < 5; ++round) callAll();
    const std::size_t before = allocations;
    for (int round = 0; round < 20; ++round) callAll();
    counted[rank] = allocations - before;
    callAll();  // nobody leaves while the other still counts
  });
  EXPECT_EQ(counted[0], 0u);
  EXPECT_EQ(counted[1], 0u);
  const std::size_t before = allocations;
  void* volatile counts = malloc(1);
  free(counts);
  EXPECT_EQ(allocations, before + 1) << "nothing is counted here";
}

}  // namespace
}  // namespace falcon::abi
