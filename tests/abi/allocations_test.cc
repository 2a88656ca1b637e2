// The call path through the C ABI allocates nothing once warm: malloc is counted in all threads.
#include <algorithm>
#include <atomic>
#include <barrier>
#include <cstddef>
#include <limits>

#include "nccl_falcon.h"
#include "ranks.h"

extern "C" void* __libc_malloc(std::size_t);

namespace {
std::atomic<std::size_t> allocations = 0;
}

// The library's own operator new ends here as well.
extern "C" void* malloc(std::size_t bytes) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_malloc(bytes);
}

namespace falcon::abi {
namespace {

constexpr int size = 2;

struct RankBuffers {
  std::vector<float> out = std::vector<float>(1 << 16, 1), in = std::vector<float>(1 << 16);
};
/// What a rank does in every round.
using Round = std::function<void(int rank, ncclComm_t comm, RankBuffers& buffers)>;

/// The fewest of several counts: a thread that the calls do not wait for may allocate now and then.
std::size_t allocationsOf(const Round& round) {
  setenv("NCCL_FALCON", "0", 1);
  std::barrier together(size);
  std::size_t fewest = std::numeric_limits<std::size_t>::max();
  withRanks(size, [&](int rank, ncclComm_t& comm) {
    RankBuffers buffers;
    for (int i = 0; i < 40; ++i) round(rank, comm, buffers);
    for (int count = 0; count < 5; ++count) {
      together.arrive_and_wait();
      const std::size_t before = allocations;
      together.arrive_and_wait();
      for (int i = 0; i < 20; ++i) round(rank, comm, buffers);
      together.arrive_and_wait();
      if (rank == 0) fewest = std::min(fewest, allocations - before);
      together.arrive_and_wait();  // nobody goes on while the other still counts
    }
  });
  return fewest;
}

constexpr std::size_t counts[] = {2, 2000, 1 << 16};

void exchange(int rank, ncclComm_t comm, RankBuffers& buffers, std::size_t count, cudaStream_t stream = nullptr) {
  NCCL_OK(ncclGroupStart());
  NCCL_OK(ncclSend(buffers.out.data(), count, ncclFloat, 1 - rank, comm, stream));
  NCCL_OK(ncclRecv(buffers.in.data(), count, ncclFloat, 1 - rank, comm, stream));
  NCCL_OK(ncclGroupEnd());
}

void sum(ncclComm_t comm, RankBuffers& buffers, std::size_t count, cudaStream_t stream = nullptr) {
  NCCL_OK(ncclAllReduce(buffers.out.data(), buffers.in.data(), count, ncclFloat, ncclSum, comm, stream));
}

TEST(Allocations, AreCountedHere) {
  const std::size_t before = allocations;
  void* volatile counted = malloc(1);
  free(counted);
  EXPECT_EQ(allocations, before + 1);
}

TEST(Allocations, AreNoneInCallsAndGroupsOfMessages) {
  EXPECT_EQ(allocationsOf([](int rank, ncclComm_t comm, RankBuffers& buffers) {
              for (const std::size_t count : counts) {
                sum(comm, buffers, count);
                exchange(rank, comm, buffers, count);
              }
            }),
            0u);
}

TEST(Allocations, AreNoneInGroupsOfCollectives) {
  EXPECT_EQ(allocationsOf([](int, ncclComm_t comm, RankBuffers& buffers) {
              NCCL_OK(ncclGroupStart());
              for (const std::size_t count : counts) sum(comm, buffers, count);
              NCCL_OK(ncclBroadcast(buffers.out.data(), buffers.in.data(), 100, ncclFloat, 0, comm, nullptr));
              NCCL_OK(ncclGroupEnd());
            }),
            0u);
}

TEST(Allocations, AreNoneOnHostStreams) {
  cudaStream_t streams[size];
  for (cudaStream_t& stream : streams) NCCL_OK(ncclFalconStreamCreate(&stream));
  EXPECT_EQ(allocationsOf([&](int rank, ncclComm_t comm, RankBuffers& buffers) {
              cudaStream_t stream = streams[rank];
              for (const std::size_t count : counts) {
                sum(comm, buffers, count, stream);
                exchange(rank, comm, buffers, count, stream);
              }
              NCCL_OK(ncclGroupStart());
              for (const std::size_t count : counts) sum(comm, buffers, count, stream);
              NCCL_OK(ncclGroupEnd());
              NCCL_OK(ncclFalconStreamSynchronize(stream));
            }),
            0u);
  for (cudaStream_t stream : streams) NCCL_OK(ncclFalconStreamDestroy(stream));
}

}  // namespace
}  // namespace falcon::abi
