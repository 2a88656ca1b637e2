// What goes in comes out: same order, same bytes, over every medium, in threads and in processes.
#include <filesystem>

#include "unit/transport/ports_world.h"

namespace falcon::transport::test {
namespace {

struct Case {
  Medium medium;
  std::size_t chunkBytes;
  int chunks;
};

std::string nameOf(const testing::TestParamInfo<Case>& info) {
  return mediumName(info.param.medium) + "_" + std::to_string(info.param.chunkBytes) + "x" +
         std::to_string(info.param.chunks);
}

std::vector<Case> allCases(std::initializer_list<Medium> media) {
  std::vector<Case> cases;
  for (const Medium medium : media)
    for (const std::size_t chunkBytes : {512, 520, 4096, 131072})
      for (const int chunks : {1, 7, 8, 9, 100}) cases.push_back({medium, chunkBytes, chunks});
  return cases;
}

class Streams : public testing::TestWithParam<Case> {};

TEST_P(Streams, KeepOrderAndContentBothWaysBetweenThreads) {
  const auto [medium, chunkBytes, chunkCount] = GetParam();
  const auto chunks = chunkCount;
  const ChunkBytes size(chunkBytes);
  World world(2, medium);
  const Rank peerOf0 = medium == Medium::self ? 0 : 1;
  const Rank peerOf1 = medium == Medium::self ? 1 : 0;
  ASSERT_EQ(world.ports[0]->mediumTo(peerOf0), medium);
  // Alone, each thread blocks in the middle unless the other runs: both directions at once.
  std::vector<std::thread> threads;
  std::array<Status, 4> results;
  const auto run = [&](int index, auto work) {
    threads.emplace_back([&results, index, work] { results[index] = work(); });
  };
  run(0, [&] { return sendStream(*world.ports[0], {peerOf0, 0}, 1, chunks); });
  run(1, [&] { return sendStream(*world.ports[1], {peerOf1, 0}, 2, chunks); });
  const std::uint64_t streamTo0 = medium == Medium::self ? 1 : 2;
  run(2, [&] { return receiveStream(*world.ports[0], {peerOf0, 0}, streamTo0, chunks); });
  run(3, [&] { return receiveStream(*world.ports[1], {peerOf1, 0}, 3 - streamTo0, chunks); });
  for (auto& thread : threads) thread.join();
  for (const Status& result : results) EXPECT_TRUE(ok(result));

  std::uint64_t payload = 0;
  for (const std::size_t bytes : chunkSizes(1, chunks, chunkBytes)) payload += bytes;
  EXPECT_GE(world.ports[0]->bytesSentTo(peerOf0), payload);
}
INSTANTIATE_TEST_SUITE_P(All, Streams,
                         testing::ValuesIn(allCases({Medium::self, Medium::sharedMemory, Medium::socket})), nameOf);

/// Sets the variables whose product is the number of sockets of a connection.
class SocketsOfAConnection {
 public:
  SocketsOfAConnection(int threads, int perThread) {
    setenv("NCCL_SOCKET_NTHREADS", std::to_string(threads).c_str(), 1);
    setenv("NCCL_NSOCKS_PERTHREAD", std::to_string(perThread).c_str(), 1);
  }
  ~SocketsOfAConnection() {
    unsetenv("NCCL_SOCKET_NTHREADS");
    unsetenv("NCCL_NSOCKS_PERTHREAD");
  }
};

int openSockets() {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    count += std::filesystem::read_symlink(entry.path(), gone).string().starts_with("socket:");
  }
  return count;
}

// The second to send finds the first one's socket, or both dial at once and agree on the lower rank's.
TEST(SharedSocket, CarriesBothDirectionsWhoeverBegins) {
  const ChunkBytes size(512);
  for (int round = 0; round < 300; ++round) {
    World world(2, Medium::socket, 2000 + static_cast<CommunicatorId>(round));
    const int before = openSockets();
    const auto rank = [&](Rank self, std::chrono::microseconds pause) {
      std::this_thread::sleep_for(pause);
      const auto stream = static_cast<std::uint64_t>(self);
      Status sent;
      std::thread sender([&] { sent = sendStream(*world.ports[self], {1 - self, 0}, stream, 20); });
      EXPECT_TRUE(ok(receiveStream(*world.ports[self], {1 - self, 0}, 1 - stream, 20)));
      sender.join();
      EXPECT_TRUE(ok(sent));
    };
    const auto pause = std::chrono::microseconds(round % 3 * round);
    std::thread other(rank, 1, round % 2 == 0 ? pause : 0us);
    rank(0, round % 2 == 0 ? 0us : pause);
    other.join();
    // Both ends are in this process. A dial that was not needed is dropped a moment later.
    for (int looks = 0; looks < 30'000 && openSockets() - before != 2; ++looks) std::this_thread::sleep_for(2ms);
    ASSERT_EQ(openSockets() - before, 2) << "round " << round;
  }
}

class StripedStreams : public testing::TestWithParam<std::pair<int, int>> {};

TEST_P(StripedStreams, KeepOrderAndContentOverSeveralSockets) {
  const auto [threads, perThread] = GetParam();
  const SocketsOfAConnection sockets(threads, perThread);
  for (const std::size_t chunkBytes : {512, 131072}) {
    const ChunkBytes size(chunkBytes);
    World world(2, Medium::socket);
    const int before = openSockets();
    Status sent, received;
    std::thread sender([&] { sent = sendStream(*world.ports[0], {1, 0}, 1, 200); });
    received = receiveStream(*world.ports[1], {0, 0}, 1, 200);
    sender.join();
    EXPECT_TRUE(ok(sent));
    EXPECT_TRUE(ok(received));
    // Both ends are in this process.
    EXPECT_EQ(openSockets() - before, 2 * std::min(threads * perThread, 64));
  }
}
INSTANTIATE_TEST_SUITE_P(All, StripedStreams,
                         testing::Values(std::pair(1, 1), std::pair(1, 2), std::pair(3, 1), std::pair(4, 4),
                                         std::pair(16, 16)));

class ForkedStreams : public testing::TestWithParam<Case> {};

TEST_P(ForkedStreams, KeepOrderAndContentAroundARing) {
  const auto [medium, chunkBytes, chunks] = GetParam();
  const ChunkBytes size(chunkBytes);
  constexpr int ranks = 3;
  ForkedWorld world(ranks, medium, [chunks = chunks, medium = medium](Rank rank, Ports& ports, Board&) -> Status {
    const Rank next = (rank + 1) % ranks;
    const Rank before = (rank + ranks - 1) % ranks;
    Status sent;
    std::thread sender([&] { sent = sendStream(ports, {next, 1}, 10 + rank, chunks); });
    const auto received = receiveStream(ports, {before, 1}, 10 + before, chunks);
    sender.join();
    if (!sent) return sent;
    if (!received) return received;
    if (ports.mediumTo(next) != medium) return Error::internal("another medium was used");
    return {};
  });
  for (Rank rank = 0; rank < ranks; ++rank) EXPECT_EQ(world.wait(rank), 0) << "rank " << rank;
}
INSTANTIATE_TEST_SUITE_P(All, ForkedStreams, testing::ValuesIn(allCases({Medium::sharedMemory, Medium::socket})),
                         nameOf);

class EveryMedium : public testing::TestWithParam<Medium> {
 protected:
  // On the medium self, rank 0 talks to itself.
  Rank peer() const { return GetParam() == Medium::self ? 0 : 1; }
  Ports& far(World& world) const { return *world.ports[static_cast<std::size_t>(peer())]; }
};
INSTANTIATE_TEST_SUITE_P(All, EveryMedium, testing::Values(Medium::self, Medium::sharedMemory, Medium::socket),
                         mediumOf);

class BetweenRanks : public testing::TestWithParam<Medium> {};
INSTANTIATE_TEST_SUITE_P(All, BetweenRanks, testing::Values(Medium::sharedMemory, Medium::socket), mediumOf);

TEST_P(EveryMedium, ReceiverMayOpenLongAfterTheSender) {
  const ChunkBytes size(4096);
  World world(2, GetParam());
  Status sent;
  std::thread sender([&] { sent = sendStream(*world.ports[0], {peer(), 3}, 5, 40); });
  std::this_thread::sleep_for(100ms);
  EXPECT_TRUE(ok(receiveStream(far(world), {0, 3}, 5, 40)));
  sender.join();
  EXPECT_TRUE(ok(sent));
}

TEST_P(EveryMedium, SenderMayOpenLongAfterTheReceiver) {
  const ChunkBytes size(4096);
  World world(2, GetParam());
  Status received;
  std::thread receiver([&] { received = receiveStream(far(world), {0, 3}, 5, 40); });
  std::this_thread::sleep_for(100ms);
  EXPECT_TRUE(ok(sendStream(*world.ports[0], {peer(), 3}, 5, 40)));
  receiver.join();
  EXPECT_TRUE(ok(received));
}

TEST_P(BetweenRanks, PortsOfThePeerMayBeMadeAfterTheSenderOpened) {
  const ChunkBytes size(4096);
  World world(2, GetParam());
  world.ports[1].reset();
  Status sent;
  std::thread sender([&] { sent = sendStream(*world.ports[0], {1, 0}, 5, 40); });
  std::this_thread::sleep_for(50ms);
  world.ports[1] = std::move(*makeLocalPorts(world.reactors[1], 42, testSecret, 1, world.peers));
  EXPECT_TRUE(ok(receiveStream(*world.ports[1], {0, 0}, 5, 40)));
  sender.join();
  EXPECT_TRUE(ok(sent));
}

TEST_P(EveryMedium, OpeningTheSameKeyAgainGivesTheSamePort) {
  World world(2, GetParam());
  EXPECT_EQ(*world.ports[0]->openSend({peer(), 0}), *world.ports[0]->openSend({peer(), 0}));
  EXPECT_EQ(*world.ports[0]->openReceive({peer(), 0}), *world.ports[0]->openReceive({peer(), 0}));
  EXPECT_NE(*world.ports[0]->openSend({peer(), 0}), *world.ports[0]->openSend({peer(), 1}));
  EXPECT_NE(*world.ports[0]->openSend({peer(), 0}), *world.ports[0]->openSend({peer(), 0, Lane::test}));
}

TEST_P(EveryMedium, KeysThatCannotBeAreRefused) {
  World world(2, GetParam());
  for (const PortKey key : {PortKey{2, 0}, PortKey{-1, 0}, PortKey{1, -1}, PortKey{1, 1 << 20}}) {
    EXPECT_FALSE(world.ports[0]->openSend(key));
    EXPECT_FALSE(world.ports[0]->openReceive(key));
  }
}

// Credit ends, memory is bounded, and nothing is lost when the receiver comes at last.
TEST_P(EveryMedium, ASenderWithoutReaderRunsOutOfCredit) {
  constexpr std::size_t chunkBytes = 65536;
  const ChunkBytes size(chunkBytes);
  World world(2, GetParam());
  SendPort& out = **world.ports[0]->openSend({peer(), 0});
  ReceivePort& in = **far(world).openReceive({0, 0});
  const auto waiter = makeWaiter();
  std::uint64_t sent = 0;
  const auto sendWhilePossible = [&]() -> Result<bool> {
    if (auto moved = out.progress(); !moved) return moved.error();
    while (true) {
      auto chunk = out.acquire();
      if (!chunk) return chunk.error();
      if (chunk->empty()) return sent > 0;
      EXPECT_EQ(out.acquire()->data(), chunk->data()) << "the same memory until commit";
      fill(*chunk, 1, sent++);
      out.commit(chunkBytes);
      if (sent > 10000) return Error::internal("10000 chunks without a reader");
    }
  };
  ASSERT_TRUE(ok(until(*waiter, sendWhilePossible, [&] { return out.waitSource(); })));
  for (int i = 0; i < 20; ++i) {  // what the kernel takes by and by
    ASSERT_TRUE(sendWhilePossible());
    std::this_thread::sleep_for(5ms);
  }
  if (GetParam() != Medium::socket) {
    EXPECT_EQ(sent, 8u);
  }
  for (std::uint64_t number = 0; number < sent; ++number) {
    ASSERT_TRUE(ok(until(
        *waiter,
        [&]() -> Result<bool> {
          if (auto moved = out.progress(); !moved) return moved.error();
          return in.ready();
        },
        [&] { return in.waitSource(); })));
    ASSERT_TRUE(matches(in.chunk(), 1, number)) << number;
    in.release();
  }
  EXPECT_TRUE(out.flushed());
  EXPECT_FALSE(*in.ready());
  ASSERT_TRUE(ok(until(
      *waiter, [&]() -> Result<bool> { return !out.acquire()->empty(); }, [&] { return out.waitSource(); })));
}

TEST_P(BetweenRanks, ManyKeysAtOnceDoNotMix) {
  const ChunkBytes size(512);
  constexpr int ranks = 4;
  constexpr int channels = 6;
  World world(ranks, GetParam());
  std::vector<Status> results(ranks * ranks * channels * 2);
  std::vector<std::thread> threads;
  const auto stream = [](Rank from, Rank to, int channel) { return from * 1000 + to * 100 + channel; };
  std::size_t next = 0;
  for (Rank from = 0; from < ranks; ++from)
    for (Rank to = 0; to < ranks; ++to)
      for (int channel = 0; channel < channels; ++channel) {
        const auto lane = static_cast<Lane>(channel % 5);
        Status& sent = results[next++];
        Status& received = results[next++];
        threads.emplace_back([&, from, to, channel, lane] {
          sent = sendStream(*world.ports[from], {to, channel, lane}, stream(from, to, channel), 12);
        });
        threads.emplace_back([&, from, to, channel, lane] {
          received = receiveStream(*world.ports[to], {from, channel, lane}, stream(from, to, channel), 12);
        });
      }
  for (auto& thread : threads) thread.join();
  for (const Status& result : results) EXPECT_TRUE(ok(result));
}

}  // namespace
}  // namespace falcon::transport::test
