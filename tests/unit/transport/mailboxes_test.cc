// The boxes between threads: messages arrive whole and in order, nothing is overwritten too early, sleepers are woken.
#include "transport/mailboxes.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <string>
#include <thread>

#include "unit/transport/boards.h"

namespace falcon::transport {
namespace {

std::vector<std::byte> messageOf(std::uint64_t number, Rank from, std::size_t bytes) {
  std::vector<std::byte> message(bytes);
  for (std::size_t i = 0; i < bytes; ++i) message[i] = static_cast<std::byte>(number * 7 + from * 31 + i);
  return message;
}

/// Sizes on both sides of what fits where.
std::size_t sizeOf(std::uint64_t number, int ranks) {
  const std::size_t room = Mailboxes::roomBytesFor(ranks);
  const std::size_t sizes[] = {1, 8, Mailboxes::slotBytes, Mailboxes::slotBytes + 1, room - 1, room, room + 1};
  return sizes[number * 5 % std::size(sizes)];
}

class Boxes : public testing::TestWithParam<int> {};

TEST_P(Boxes, EveryMessageArrivesInOrderAndNoWakeUpIsLost) {
  const int ranks = GetParam();
  constexpr std::uint64_t messages = 600;
  auto all = boards(ranks);
  std::vector<std::string> wrong(ranks);
  // In a ring: each rank sends to the next and receives from the one before, early or late in turn.
  const auto act = [&](Rank self) {
    NodeBoard& board = *all[self];
    Mailboxes& mail = *board.mail();
    const Rank to = (self + 1) % ranks, from = (self + ranks - 1) % ranks;
    std::mt19937 random(static_cast<unsigned>(self));
    for (std::uint64_t number = 1; number <= messages; ++number) {
      if (random() % 8 == 0) std::this_thread::yield();
      const auto sent = messageOf(number, self, sizeOf(number, ranks));
      sleepUntil(board, NodeBoard::awaitedMessage(to), [&] { return mail.mayPost(to, number); });
      const bool whole = mail.postWhole(to, number, sent.data(), sent.size());
      if (!whole) mail.postAddress(to, number, sent.data(), sent.size(), number % 2 == 0);
      sleepUntil(board, NodeBoard::awaitedMessage(from), [&] { return mail.hasCome(from, number); });
      Mailboxes::Letter letter;
      const auto wanted = messageOf(number, from, sizeOf(number, ranks));
      if (!mail.read(from, number, letter) || letter.bytes != wanted.size()) wrong[self] = "another's letter";
      // All ranks are in this process.
      const void* place = letter.here ? letter.here : reinterpret_cast<const void*>(letter.address);
      if (std::memcmp(place, wanted.data(), wanted.size()) != 0) wrong[self] = "another's bytes";
      if (letter.timed) mail.begin(from, number);
      mail.take(from, number);
      if (!whole) sleepUntil(board, NodeBoard::awaitedMessage(to), [&] { return mail.wasTaken(to, number); });
    }
  };
  std::vector<std::thread> threads;
  for (Rank rank = 0; rank < ranks; ++rank) threads.emplace_back(act, rank);
  for (std::thread& thread : threads) thread.join();
  for (const std::string& each : wrong) EXPECT_EQ(each, "");
}
INSTANTIATE_TEST_SUITE_P(Ranks, Boxes, testing::Values(2, 3, 17));

TEST(Mailboxes, ASenderIsAheadByTheSlotsAndNoFurther) {
  auto all = boards(2);
  Mailboxes& out = *all[0]->mail();
  Mailboxes& in = *all[1]->mail();
  const std::byte one{1};
  std::uint64_t posted = 0;
  for (; out.mayPost(1, posted + 1); ++posted) ASSERT_TRUE(out.postWhole(1, posted + 1, &one, 1));
  EXPECT_EQ(posted, Mailboxes::slotCountFor(2));
  ASSERT_TRUE(in.hasCome(0, 1));
  in.take(0, 1);
  EXPECT_TRUE(out.mayPost(1, posted + 1));
}

TEST(Mailboxes, RoomsAreUsedAgainOnceTheirMessagesWereTaken) {
  auto all = boards(3);
  Mailboxes& out = *all[0]->mail();
  const std::vector<std::byte> message(Mailboxes::slotBytes + 1);
  std::uint64_t numbers[3] = {};
  // Whoever gets them.
  for (int used = 0; used < Mailboxes::roomCount; ++used) {
    const Rank to = 1 + used % 2;
    ASSERT_TRUE(out.postWhole(to, ++numbers[to], message.data(), message.size()));
  }
  EXPECT_FALSE(out.postWhole(1, numbers[1] + 1, message.data(), message.size()));
  out.postAddress(1, ++numbers[1], message.data(), message.size(), false);
  EXPECT_TRUE(out.postWhole(1, ++numbers[1], message.data(), Mailboxes::slotBytes));  // needs no room
  all[2]->mail()->take(0, 1);
  EXPECT_TRUE(out.postWhole(1, ++numbers[1], message.data(), message.size()));
}

TEST(Mailboxes, MessagesOfAPairWaitForTheirTurn) {
  auto all = boards(2);
  Mailboxes& out = *all[0]->mail();
  Mailboxes& in = *all[1]->mail();
  const std::byte value{5};
  EXPECT_FALSE(out.mayPost(1, 2));
  ASSERT_TRUE(out.mayPost(1, 1));
  ASSERT_TRUE(out.postWhole(1, 1, &value, 1));
  ASSERT_TRUE(out.mayPost(1, 2));
  ASSERT_TRUE(out.postWhole(1, 2, &value, 1));
  EXPECT_FALSE(in.hasCome(0, 2));
  EXPECT_TRUE(in.hasCome(0, 1));
  in.take(0, 1);
  EXPECT_TRUE(in.hasCome(0, 2));
  EXPECT_FALSE(in.hasCome(0, 3));
  EXPECT_TRUE(out.wasTaken(1, 1));
  EXPECT_FALSE(out.wasTaken(1, 2));
}

TEST(Mailboxes, TheSenderSeesThatItIsBeingRead) {
  auto all = boards(2);
  Mailboxes& out = *all[0]->mail();
  Mailboxes& in = *all[1]->mail();
  const std::vector<std::byte> message(100);
  out.postAddress(1, 1, message.data(), message.size(), true);
  Mailboxes::Letter letter;
  ASSERT_TRUE(in.read(0, 1, letter));
  EXPECT_EQ(letter.here, nullptr);
  EXPECT_EQ(letter.address, reinterpret_cast<std::uintptr_t>(message.data()));
  EXPECT_TRUE(letter.timed);
  EXPECT_FALSE(out.isBeingRead(1, 1));
  in.begin(0, 1);
  EXPECT_TRUE(out.isBeingRead(1, 1));
  EXPECT_FALSE(out.wasTaken(1, 1));
}

TEST(Mailboxes, ThereAreNoneForManyRanks) {
  auto board = NodeBoard::create(Mailboxes::mostRanks + 1);
  ASSERT_TRUE(board);
  const std::shared_ptr<Doorbell> doorbell(&processDoorbell(), [](Doorbell*) {});
  (*board)->enter(0, std::vector(Mailboxes::mostRanks + 1, doorbell));
  EXPECT_EQ((*board)->mail(), nullptr);
}

}  // namespace
}  // namespace falcon::transport
