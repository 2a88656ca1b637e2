// The call path allocates nothing after warm-up: counted, in the thread that calls.
#include <array>
#include <atomic>
#include <barrier>
#include <cstdlib>
#include <new>
#include <thread>

#include "collectives/single_call.h"
#include "direct_members.h"
#include "transport/chunk_size.h"
#include "unit/transport/ports_world.h"
#include "world.h"

namespace {
thread_local std::size_t allocations = 0;
}

// Not inlined: the compiler would take a pair of new and free() for a mistake.
[[gnu::noinline]] void* operator new(std::size_t bytes) {
  ++allocations;
  if (void* memory = std::malloc(bytes == 0 ? 1 : bytes)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}

namespace falcon::collectives {
namespace {

using transport::Medium;

constexpr int ranks = 3;

struct Buffers {
  std::vector<float> send = std::vector<float>(ranks << 16, 1), receive = std::vector<float>(ranks << 16);
};

/// Nothing to look at: only lets the waiter's lists grow to what they may come to.
void warm(transport::Waiter& waiter) {
  std::array<transport::WaitSource, 32> sources;
  sources.fill({.kind = transport::WaitSource::Kind::socket, .descriptor = -1});
  waiter.prepare();
  waiter.wait(sources, 0ns);
}

/// Every call that goes the short way; true if all went well.
bool runAll(LocalMember& member, Buffers& buffers, transport::Waiter& waiter) {
  bool good = true;
  const auto alone = [&](Operation operation, std::size_t count, Rank root = -1) {
    const Call call{operation, DataType::f32, ReduceOp::sum, buffers.send.data(), buffers.receive.data(), count, root};
    const auto done = runAlone(member, call, {waiter});
    good = good && done && *done;
  };
  for (const std::size_t count : {std::size_t{2}, std::size_t{1} << 16}) {
    alone(Operation::allToAll, count);
    alone(Operation::gather, count, 0);
    alone(Operation::scatter, count, 2);
    const Rank next = (member.shape.rank + 1) % ranks, before = (member.shape.rank + 2) % ranks;
    const Submission group[] = {
        {nullptr, {Operation::send, DataType::f32, ReduceOp::sum, buffers.send.data(), nullptr, count, next}},
        {nullptr, {Operation::receive, DataType::f32, ReduceOp::sum, nullptr, buffers.receive.data(), count, before}}};
    good = good && areMessages(member, group) && runMessages(member, group, {waiter});
    for (const Operation operation : {Operation::allReduce, Operation::allGather, Operation::reduceScatter})
      alone(operation, count == 2 ? 2 : (256 << 10) / sizeof(float) / (operation == Operation::allReduce ? 1 : ranks));
    alone(Operation::broadcast, count, 1);
    alone(Operation::reduce, count, 1);
  }
  return good;
}

class Allocations : public testing::TestWithParam<Medium> {};

TEST_P(Allocations, AreNoneAfterWarmUp) {
  const bool sharesMemory = GetParam() == Medium::sharedMemory;
  transport::test::World lines(ranks, GetParam());
  const auto failure = std::make_shared<std::optional<Error>>();
  test::DirectMembers directs = test::directMembers(ranks, test::Access::memory);
  std::barrier together(ranks);
  std::array<std::size_t, ranks> counted{};
  std::array<bool, ranks> good{};
  std::vector<std::thread> threads;
  for (Rank rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] {
      test::FakeNetwork network(1, rank, ranks, failure);
      MemberShape shape{rank, ranks, 1, 2, 128 << 10};
      shape.extent = sharesMemory ? Extent::node : Extent::network;
      shape.directChunkBytes = transport::mostDirectChunk;
      LocalMember member(shape, *lines.ports[rank], network, {}, {0, 1, 2});
      if (sharesMemory) member.direct = std::move(directs[rank]);
      Buffers buffers;
      const auto waiter = transport::makeWaiter();
      warm(*waiter);
      good[rank] = runAll(member, buffers, *waiter) && runAll(member, buffers, *waiter);
      const std::size_t before = allocations;
      for (int round = 0; round < 5; ++round) good[rank] = runAll(member, buffers, *waiter) && good[rank];
      counted[rank] = allocations - before;
      together.arrive_and_wait();  // nobody leaves while others still run
    });
  for (std::thread& thread : threads) thread.join();
  for (Rank rank = 0; rank < ranks; ++rank) {
    EXPECT_TRUE(good[rank]);
    EXPECT_EQ(counted[rank], 0u) << "rank " << rank;
  }
}
INSTANTIATE_TEST_SUITE_P(Media, Allocations, testing::Values(Medium::sharedMemory, Medium::socket),
                         transport::test::mediumOf);

}  // namespace
}  // namespace falcon::collectives
