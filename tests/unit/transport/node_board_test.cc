// The board between threads: what is posted arrives whole, slots are not used too early, and sleepers are woken.
#include "transport/node_board.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <thread>

#include "transport/peer_memory.h"
#include "unit/transport/boards.h"

namespace falcon::transport {
namespace {

using Stage = NodeBoard::Stage;

/// Ranks, and which of them does not take part in heavy fences.
class Boards : public testing::TestWithParam<std::pair<int, Rank>> {};

TEST_P(Boards, EveryoneSeesWhatEveryonePostsAndNoWakeUpIsLost) {
  const auto [ranks, stranger] = GetParam();
  constexpr std::uint64_t operations = 2000;
  auto all = boards(ranks, stranger);
  std::vector<std::string> wrong(ranks);
  const auto act = [&, ranks = ranks](Rank self) {
    NodeBoard& board = *all[self];
    std::mt19937 random(static_cast<unsigned>(self));
    for (std::uint64_t operation = 1; operation <= operations; ++operation) {
      // Ranks are early or late in turn.
      if (random() % 8 == 0) std::this_thread::yield();
      // The first are all in lines, so that ranks can be far ahead; then also in slots and in the few rooms.
      const std::uint64_t longest = operation * 3 / (operations + 1);
      const std::uint64_t place = random() % (longest + 1);
      while (!board.mayPost(operation, place)) {
        const Rank slow = board.blocker();
        sleepUntil(board, NodeBoard::awaitedCompletion(slow, board.needed()),
                   [&] { return board.hasCompleted(slow, board.needed()); });
      }
      const std::uint64_t value = operation * 100 + static_cast<std::uint64_t>(self);
      std::memcpy(board.payload(operation, place), &value, sizeof value);
      board.post(operation, {.signature = operation, .input = place, .output = value});
      for (Rank peer = 0; peer < ranks; ++peer) {
        sleepUntil(board, NodeBoard::awaitedStage(peer, operation, Stage::posted),
                   [&] { return board.reached(peer, operation, Stage::posted); });
        std::uint64_t got = 0;
        const auto notice = board.notice(peer, operation);
        std::memcpy(&got, board.payload(peer, operation, notice.input), sizeof got);
        const std::uint64_t wanted = operation * 100 + static_cast<std::uint64_t>(peer);
        if (got != wanted || notice.output != wanted || notice.signature != operation) wrong[self] = "another's value";
      }
      board.complete(operation);
    }
  };
  std::vector<std::thread> threads;
  for (Rank rank = 0; rank < ranks; ++rank) threads.emplace_back(act, rank);
  for (std::thread& thread : threads) thread.join();
  for (const std::string& each : wrong) EXPECT_EQ(each, "");
}
INSTANTIATE_TEST_SUITE_P(Ranks, Boards,
                         testing::Values(std::pair(2, -1), std::pair(3, -1), std::pair(5, -1), std::pair(3, 1)));

TEST(NodeBoard, WhoLeavesWakesThoseWhoWait) {
  auto all = boards(2);
  std::thread waiting([&] { sleepUntil(*all[0], {.rank = 1}, [&] { return all[0]->hasLeft(1); }); });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  all[1].reset();
  waiting.join();
  EXPECT_FALSE(all[0]->reached(1, 1, Stage::posted));
}

// Who runs ahead publishes hundreds of times what the sleeper need not know: each ring would wake it for nothing.
TEST(NodeBoard, OnlyWhatASleeperWaitsForRings) {
  std::vector<std::shared_ptr<Doorbell>> doorbells;
  for (int i = 0; i < 3; ++i) {
    auto doorbell = Doorbell::create();
    ASSERT_TRUE(doorbell);
    doorbells.push_back(std::move(*doorbell));
  }
  auto board = NodeBoard::create(3);
  ASSERT_TRUE(board);
  auto one = NodeBoard::open((*board)->name(), 3), two = NodeBoard::open((*board)->name(), 3);
  ASSERT_TRUE(one && two);
  NodeBoard &sleeper = **board, &awaited = **one, &other = **two;
  sleeper.enter(0, doorbells);
  awaited.enter(1, doorbells);
  other.enter(2, doorbells);
  const auto rings = [&](const NodeBoard::Awaited& what, const auto& act) {
    const auto before = doorbells[0]->ticket();
    sleeper.announceSleep(what);
    act();
    sleeper.withdrawSleep();
    return doorbells[0]->ticket() != before;
  };
  const NodeBoard::Notice notice{.signature = 1};
  EXPECT_FALSE(rings(NodeBoard::awaitedCompletion(1, 5), [&] {
    awaited.post(1, notice);
    for (std::uint64_t operation = 1; operation < 5; ++operation) awaited.complete(operation);
    awaited.advance(6, Stage::output);
    awaited.take(0, 6, 2);
    other.complete(5);
  }));
  EXPECT_TRUE(rings(NodeBoard::awaitedCompletion(1, 5), [&] { awaited.complete(5); }));
  EXPECT_TRUE(rings(NodeBoard::awaitedCompletion(1, 6), [&] { awaited.complete(7); })) << "more than it waits for";
  EXPECT_FALSE(rings(NodeBoard::awaitedStage(1, 9, Stage::output), [&] { awaited.post(9, notice); }));
  EXPECT_TRUE(rings(NodeBoard::awaitedStage(1, 9, Stage::output), [&] { awaited.advance(9, Stage::output); }));
  EXPECT_FALSE(rings(NodeBoard::awaitedTaking(1, 9, 2), [&] { awaited.take(0, 9, 1); }));
  EXPECT_TRUE(rings(NodeBoard::awaitedTaking(1, 9, 2), [&] { awaited.take(0, 9, 2); }));
  EXPECT_FALSE(rings(NodeBoard::awaitedMessage(1), [&] { awaited.complete(10); }));
  std::atomic<std::uint64_t> word{0};
  EXPECT_TRUE(rings(NodeBoard::awaitedMessage(1), [&] { awaited.publishTo(0, word, 1); }));
  EXPECT_TRUE(rings({}, [&] { other.complete(11); })) << "waits for something of anyone";
  EXPECT_TRUE(rings(NodeBoard::awaitedCompletion(1, 99), [&] { two->reset(); })) << "somebody leaves";
}

TEST(NodeBoard, NobodyOpensItOnceItsNameIsDropped) {
  auto board = NodeBoard::create(2);
  ASSERT_TRUE(board);
  const std::string name = (*board)->name();
  (*board)->dropName();
  board->reset();
  EXPECT_FALSE(NodeBoard::open(name, 2));
  EXPECT_FALSE(NodeBoard::create(NodeBoard::mostRanks + 1));
}

TEST(PeerMemory, ReadsOnlyWhoKnowsTheNonce) {
  const std::uint64_t nonce = 77;
  const MemoryOffer offer{getpid(), reinterpret_cast<std::uintptr_t>(&nonce), nonce};
  auto memory = PeerMemory::attach(offer);
  ASSERT_TRUE(memory) << memory.error().message();
  std::vector<char> from(10'000, 'x'), to(10'000);
  const auto address = reinterpret_cast<std::uintptr_t>(from.data());
  EXPECT_TRUE(memory->read(reinterpret_cast<std::byte*>(to.data()), address, to.size(), true));
  EXPECT_EQ(from, to);
  EXPECT_FALSE(PeerMemory::attach({getpid(), offer.nonceAt, nonce + 1})) << "another process";
  EXPECT_FALSE(PeerMemory::attach({getpid(), 8, nonce})) << "no memory there";
  EXPECT_FALSE(PeerMemory::attach({0, 0, nonce})) << "not allowed";
  EXPECT_FALSE(PeerMemory::attach(ownMemoryOffer(false)));
  EXPECT_TRUE(PeerMemory::attach(ownMemoryOffer(true)));
}

TEST(PeerMemory, AnotherProcessUnderTheSameIdIsNoticed) {
  std::uint64_t nonce = 77;
  auto memory = PeerMemory::attach({getpid(), reinterpret_cast<std::uintptr_t>(&nonce), nonce});
  ASSERT_TRUE(memory);
  nonce = 78;  // as good as another process
  char from = 'x', to = 0;
  const auto got = memory->read(reinterpret_cast<std::byte*>(&to), reinterpret_cast<std::uintptr_t>(&from), 1, true);
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code(), ErrorCode::remote);
}

TEST(PeerMemory, MemoryThatIsNotThereIsAnError) {
  const std::uint64_t nonce = 77;
  auto memory = PeerMemory::attach({getpid(), reinterpret_cast<std::uintptr_t>(&nonce), nonce});
  ASSERT_TRUE(memory);
  std::vector<std::byte> to(100'000);
  for (const bool last : {false, true}) EXPECT_FALSE(memory->read(to.data(), 4096, to.size(), last));
}

}  // namespace
}  // namespace falcon::transport
