// Peers that leave, die, disagree or talk nonsense: an error that names them, soon, or another way to go.
#include <poll.h>

#include <csignal>
#include <set>

#include "harness/doorman.h"
#include "harness/in_time.h"
#include "transport/connection_offer.h"
#include "unit/transport/ports_world.h"

namespace falcon::transport::test {
namespace {

class PortFailures : public testing::TestWithParam<Medium> {};
INSTANTIATE_TEST_SUITE_P(All, PortFailures, testing::Values(Medium::sharedMemory, Medium::socket), mediumOf);

void expectRemote(const Status& status, const std::string& who) {
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code(), ErrorCode::remote) << status.error().message();
  EXPECT_NE(status.error().message().find(who), std::string::npos) << status.error().message();
}

TEST_P(PortFailures, APeerThatLeftIsARemoteErrorAfterItsLastChunk) {
  const ChunkBytes size(4096);
  World world(2, GetParam());
  Status sent;
  std::thread sender([&] {
    sent = sendStream(*world.ports[1], {0, 0}, 1, 6);
    world.ports[1].reset();
  });
  // Six chunks come whole although their sender has gone, the seventh does not come.
  const auto received = receiveStream(*world.ports[0], {1, 0}, 1, 6);
  sender.join();
  EXPECT_TRUE(ok(sent));
  EXPECT_TRUE(ok(received));
  ReceivePort& in = **world.ports[0]->openReceive({1, 0});
  const auto waiter = makeWaiter();
  expectRemote(until(
                   *waiter, [&] { return in.ready(); }, [&] { return in.waitSource(); }),
               "rank 1");
}

TEST_P(PortFailures, SendingToAPeerThatLeftIsARemoteError) {
  const ChunkBytes size(4096);
  World world(2, GetParam());
  Status received;
  std::thread receiver([&] {
    received = receiveStream(*world.ports[1], {0, 0}, 1, 3);
    world.ports[1].reset();
  });
  const auto sent = sendStream(*world.ports[0], {1, 0}, 1, 10000);
  receiver.join();
  EXPECT_TRUE(ok(received));
  expectRemote(sent, "rank 1");
}

// Shared memory does not tell of a death: the communicator's network does.
/// How long it takes until both of its peers know.
std::chrono::duration<double> timeUntilAKilledPeerIsKnown() {
  const ChunkBytes size(4096);
  constexpr int atFirst = 20;  // chunks over each way: then all are connected
  ForkedWorld world(3, Medium::socket, [](Rank rank, Ports& ports, Board& board) -> Status {
    if (rank == 1) {  // sends to 0, receives from 2, until it is killed
      std::thread sender([&] {
        for (const int chunks : {atFirst, 1 << 20}) static_cast<void>(sendStream(ports, {0, 0}, 1, chunks));
      });
      for (const int chunks : {atFirst, 1 << 20}) static_cast<void>(receiveStream(ports, {2, 0}, 2, chunks));
      sender.join();
      return {};
    }
    const auto move = [&](int chunks) {
      return rank == 0 ? receiveStream(ports, {1, 0}, 1, chunks) : sendStream(ports, {1, 0}, 2, chunks);
    };
    if (const auto moved = move(atFirst); !moved) return moved;
    board.entries[static_cast<std::size_t>(rank)].number = 1;
    const auto moved = move(1 << 20);
    if (moved) return Error::internal("it went on without the peer");
    if (moved.error().code() != ErrorCode::remote) return moved.error();
    if (moved.error().message().find("rank 1") == std::string::npos) return moved.error();
    board.entries[static_cast<std::size_t>(rank)].flag = true;
    return {};
  });
  auto& entries = world.board().entries;
  for (int i = 0; i < 60'000 && entries[0].number + entries[2].number < 2; ++i) std::this_thread::sleep_for(1ms);
  EXPECT_EQ(entries[0].number + entries[2].number, 2) << "they are not connected";
  EXPECT_FALSE(entries[0].flag || entries[2].flag);
  const auto time = falcon::test::timeOf([&] {
    kill(world.children[1], SIGKILL);
    EXPECT_EQ(world.wait(0), 0);
    EXPECT_EQ(world.wait(2), 0);
  });
  EXPECT_EQ(world.wait(1), 128 + SIGKILL);
  return time;
}

TEST(SocketPorts, AKilledPeerIsARemoteErrorWithinFiveSeconds) {
  EXPECT_TRUE(falcon::test::isInTime(5s, timeUntilAKilledPeerIsKnown));
}

TEST_P(PortFailures, ADifferentBufferSizeIsToldOnBothSides) {
  std::optional<ChunkBytes> size(std::in_place, 4096);
  World world(2, GetParam());
  size.emplace(8192);
  world.ports[1].reset();
  world.ports[1] = std::move(*makeLocalPorts(world.reactors[1], 42, testSecret, 1, world.peers));
  Status received;
  std::thread receiver([&] { received = receiveStream(*world.ports[1], {0, 0}, 1, 1); });
  const auto sent = sendStream(*world.ports[0], {1, 0}, 1, 1);
  receiver.join();
  for (const Status& status : {sent, received}) {
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code(), ErrorCode::invalidUsage);
    EXPECT_NE(status.error().message().find("NCCL_BUFFSIZE"), std::string::npos);
  }
}

void streamBothWays(World& world) {
  std::array<Status, 4> results;
  std::vector<std::thread> threads;
  for (Rank rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&, rank] { results[rank] = sendStream(*world.ports[rank], {1 - rank, 0}, rank, 30); });
    threads.emplace_back([&, rank] {
      results[2 + rank] = receiveStream(*world.ports[rank], {1 - rank, 0}, 1 - rank, 30);
    });
  }
  for (auto& thread : threads) thread.join();
  for (const Status& result : results) EXPECT_TRUE(ok(result));
}

TEST(Fallback, SenderThatCannotReachThePeersDoorbellUsesSockets) {
  const ChunkBytes size(4096);
  World world(2, Medium::sharedMemory);
  auto peers = world.peers;
  peers[1].process = 1;  // another process, whose doorbell is not there
  peers[1].doorbell = "1/1/0123456789abcdef";
  world.ports[0].reset();
  world.ports[0] = std::move(*makeLocalPorts(world.reactors[0], 42, testSecret, 0, peers));
  ASSERT_EQ(world.ports[0]->mediumTo(1), Medium::sharedMemory) << "not known before it was tried";
  streamBothWays(world);
  EXPECT_EQ(world.ports[0]->mediumTo(1), Medium::socket);
  EXPECT_EQ(world.ports[1]->mediumTo(0), Medium::socket);
}

TEST(Fallback, ReceiverThatDoesNotShareMemoryGetsSockets) {
  const ChunkBytes size(4096);
  World world(2, Medium::sharedMemory);
  auto peers = world.peers;
  peers[1].doorbell.clear();  // as rank 1 sees itself: NCCL_SHM_DISABLE
  world.ports[1].reset();
  world.ports[1] = std::move(*makeLocalPorts(world.reactors[1], 42, testSecret, 1, peers));
  streamBothWays(world);
  EXPECT_EQ(world.ports[0]->mediumTo(1), Medium::socket);
}

TEST(Fallback, ShmDisableMeansSockets) {
  setenv("NCCL_SHM_DISABLE", "1", 1);
  World world(2, Medium::sharedMemory);
  unsetenv("NCCL_SHM_DISABLE");
  EXPECT_EQ(world.ports[0]->mediumTo(1), Medium::socket);
  streamBothWays(world);
}

// It had come before it was expected, when too many others had.
TEST(Redial, WhoIsTurnedAwayComesAgainWithEachOfItsSockets) {
  const ChunkBytes size(4096);
  setenv("NCCL_NSOCKS_PERTHREAD", "2", 1);
  World world(2, Medium::socket);
  unsetenv("NCCL_NSOCKS_PERTHREAD");
  const falcon::test::Doorman door(world.peers[1].address, 3);
  auto peers = world.peers;
  peers[1].address = door.address();
  world.ports[0].reset();
  setenv("NCCL_NSOCKS_PERTHREAD", "2", 1);
  world.ports[0] = std::move(*makeLocalPorts(world.reactors[0], 42, testSecret, 0, peers));
  unsetenv("NCCL_NSOCKS_PERTHREAD");
  Status received;
  std::thread receiver([&] { received = receiveStream(*world.ports[1], {0, 0}, 1, 10); });
  const auto sent = sendStream(*world.ports[0], {1, 0}, 1, 10);
  receiver.join();
  EXPECT_TRUE(ok(sent));
  EXPECT_TRUE(ok(received));
  EXPECT_EQ(door.left(), 0);
}

// Whoever has the secret may still be buggy.
TEST(Offers, NonsenseIsDroppedAndOthersGoOn) {
  const ChunkBytes size(4096);
  World world(2, Medium::socket);
  ConnectionOffer good{.channel = 0, .lane = Lane::ring, .chunkBytes = 4096, .segment = "", .doorbell = ""};
  auto badChannel = good;
  badChannel.channel = channelLimit;
  auto badLane = good;
  badLane.lane = static_cast<Lane>(99);
  const std::pair<Rank, std::string> offers[] = {{0, ""},
                                                 {0, "x"},
                                                 {0, good.encode() + "x"},
                                                 {0, badChannel.encode()},
                                                 {-1, good.encode()},
                                                 {2, good.encode()},
                                                 {1, good.encode()},
                                                 {0, badLane.encode()}};
  for (const auto& [from, payload] : offers) {
    const Hello hello{Purpose::data, inboxKey(42, 1), testSecret, from, payload};
    auto socket = connectWithHello({}, world.peers[1].address, hello, 60s);
    ASSERT_TRUE(socket);
    char byte;
    pollfd readable{socket->get(), POLLIN, 0};
    ASSERT_EQ(poll(&readable, 1, 60'000), 1);
    EXPECT_LE(recv(socket->get(), &byte, 1, MSG_DONTWAIT), 0) << "it was let in";
  }
  streamBothWays(world);
}

TEST(Offers, SurviveTheWire) {
  const ConnectionOffer offer{7, Lane::peerToPeer, 4096, "1/2/3", "4/5/6"};
  const auto read = ConnectionOffer::decode(offer.encode());
  ASSERT_TRUE(read);
  EXPECT_EQ(read->encode(), offer.encode());
  for (std::size_t length = 0; length < offer.encode().size(); ++length)
    EXPECT_FALSE(ConnectionOffer::decode(offer.encode().substr(0, length)));
}

TEST(Offers, EveryInboxHasAKeyOfItsOwn) {
  std::set<std::uint64_t> keys;
  for (CommunicatorId communicator = 0; communicator < 50; ++communicator)
    for (Rank rank = 0; rank < 200; ++rank) keys.insert(inboxKey(communicator, rank));
  EXPECT_EQ(keys.size(), 50u * 200u);
}

}  // namespace
}  // namespace falcon::transport::test
