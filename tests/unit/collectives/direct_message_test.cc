// Messages inside a node: right around every edge, in any order, whichever way the other end goes.
#include "collectives/direct_message.h"

#include <random>

#include "direct_members.h"
#include "harness/thoroughness.h"
#include "world.h"

namespace falcon::collectives {
namespace {

using test::Access;
using test::World;
using transport::Mailboxes;
using State = DirectMessage::State;

World worldOf(int ranks, World::Options options = {}) {
  World world(1, ranks, 1, options);
  auto directs = test::directMembers(ranks, Access::memory);
  for (Rank rank = 0; rank < ranks; ++rank) world[rank].direct = std::move(directs[rank]);
  return world;
}

Call sendOf(const std::vector<std::byte>& data, Rank to) {
  return {Operation::send, DataType::u8, ReduceOp::sum, data.data(), nullptr, data.size(), to};
}
Call receiveOf(std::vector<std::byte>& data, Rank from) {
  return {Operation::receive, DataType::u8, ReduceOp::sum, nullptr, data.data(), data.size(), from};
}

/// One rank's calls, all side by side or the long way.
class EitherWay {
 public:
  EitherWay(LocalMember& member, const std::vector<Call>& calls, bool isShort) : member_(member), isShort_(isShort) {
    if (isShort) member.directMessages.begin();
    for (const Call& call : calls) {
      if (isShort)
        member.directMessages.add(*member.direct, call);
      else
        note(long_.add(member, call));
    }
    if (!isShort) note(long_.start());
  }
  bool finished() const { return isShort_ ? finished_ : long_.finished(); }
  /// True if anything moved.
  bool progress() {
    if (!isShort_) return long_.progress();
    const auto state = member_.directMessages.progress();
    if (!state) note(state.error());
    finished_ = state && *state == State::finished;
    return state && *state != State::stuck;
  }
  Status outcome() const { return status_ && !isShort_ ? long_.outcome() : status_; }

 private:
  void note(const Status& status) {
    if (status_) status_ = status;
  }

  LocalMember& member_;
  const bool isShort_;
  bool finished_ = false;
  GroupRun long_{SystemClock::instance()};
  Status status_;
};

testing::AssertionResult drive(std::vector<std::unique_ptr<EitherWay>>& ranks, std::mt19937& random) {
  for (int idle = 0; idle < 20000;) {
    bool open = false;
    for (const auto& rank : ranks) {
      open |= !rank->finished();
      if (!rank->outcome()) return testing::AssertionFailure() << rank->outcome().error().message();
    }
    if (!open) return testing::AssertionSuccess();
    const auto& pick = ranks[random() % ranks.size()];
    idle = !pick->finished() && pick->progress() ? 0 : idle + 1;
  }
  return testing::AssertionFailure() << "stuck";
}

constexpr std::size_t room = Mailboxes::roomBytesFor(3);
constexpr std::size_t messagePiece = DirectMessage::pieceBytes;

TEST(DirectMessage, AnySizesInBothDirectionsAndAnyOrderAmongAllPeers) {
  constexpr std::size_t edges[] = {
      0,        1,        8,      Mailboxes::slotBytes, Mailboxes::slotBytes + 1, 1000, 4096, 4097, room,
      room - 1, room + 1, 65'537, messagePiece - 1,     messagePiece + 1};
  std::mt19937 random(4);
  constexpr int ranks = 3, messages = 6;
  for (int round = 0; round < test::samples(30); ++round) {
    World world = worldOf(ranks);
    // sent[from][to][i] goes to received[from][to][i]; some begin at odd addresses.
    std::vector<std::byte> sent[ranks][ranks][messages], received[ranks][ranks][messages];
    std::vector<Call> calls[ranks];
    for (Rank from = 0; from < ranks; ++from)
      for (Rank to = 0; to < ranks; ++to) {
        if (from == to) continue;
        for (int i = 0; i < messages; ++i) {
          const std::size_t bytes = edges[random() % std::size(edges)];
          const std::size_t shift = random() % 3;
          auto& out = sent[from][to][i];
          auto& in = received[from][to][i];
          out.resize(bytes + shift);
          in.resize(bytes + shift);
          for (std::size_t at = shift; at < out.size(); ++at) out[at] = static_cast<std::byte>(random());
          calls[from].push_back({Operation::send, DataType::u8, ReduceOp::sum, out.data() + shift, nullptr, bytes, to});
          calls[to].push_back(
              {Operation::receive, DataType::u8, ReduceOp::sum, nullptr, in.data() + shift, bytes, from});
        }
      }
    std::vector<std::unique_ptr<EitherWay>> runs;
    for (Rank rank = 0; rank < ranks; ++rank)
      runs.push_back(std::make_unique<EitherWay>(world[rank], calls[rank], rank == round % ranks || random() % 2 == 0));
    ASSERT_TRUE(drive(runs, random)) << "round " << round;
    for (Rank from = 0; from < ranks; ++from)
      for (Rank to = 0; to < ranks; ++to)
        for (int i = 0; i < messages; ++i)
          ASSERT_EQ(sent[from][to][i], received[from][to][i]) << from << " to " << to << ", message " << i;
  }
}

TEST(DirectMessage, AShortOneNeedsNoReceiverAndALongOneWaitsForIt) {
  World world = worldOf(2);
  const std::vector<std::byte> small(8), large(room + 1);
  std::vector<std::byte> smallIn(8), largeIn(room + 1);
  DirectMessage first(*world[0].direct, sendOf(small, 1)), second(*world[0].direct, sendOf(large, 1));
  EXPECT_EQ(*first.progress(), State::finished);
  EXPECT_EQ(*second.progress(), State::advanced);
  EXPECT_EQ(*second.progress(), State::stuck);
  EXPECT_EQ(second.awaited().rank, 1);
  DirectMessage smallReceive(*world[1].direct, receiveOf(smallIn, 0)),
      largeReceive(*world[1].direct, receiveOf(largeIn, 0));
  EXPECT_EQ(*largeReceive.progress(), State::stuck) << "it is not its turn";
  EXPECT_EQ(*smallReceive.progress(), State::finished);
  EXPECT_EQ(*largeReceive.progress(), State::finished);
  EXPECT_EQ(*second.progress(), State::finished);
}

TEST(DirectMessage, SizesThatDifferAreAnErrorOfTheReceiver) {
  const std::pair<std::size_t, std::size_t> pairs[] = {
      {8, 7}, {8, messagePiece}, {messagePiece, 8}, {messagePiece, messagePiece + 1}};
  for (const auto& [sent, expected] : pairs) {
    World world = worldOf(2);
    const std::vector<std::byte> out(sent);
    std::vector<std::byte> in(expected);
    DirectMessage send(*world[0].direct, sendOf(out, 1)), receive(*world[1].direct, receiveOf(in, 0));
    ASSERT_TRUE(send.progress());
    const auto state = receive.progress();
    ASSERT_FALSE(state);
    EXPECT_EQ(state.error().code(), ErrorCode::invalidUsage);
  }
}

TEST(DirectMessage, ARankThatLeavesIsAnErrorForThoseWhoWaitForIt) {
  World world = worldOf(3);
  const std::vector<std::byte> large(room + 1);
  std::vector<std::byte> in(8);
  DirectMessage send(*world[0].direct, sendOf(large, 1)), receive(*world[2].direct, receiveOf(in, 1));
  ASSERT_TRUE(send.progress());
  ASSERT_EQ(*receive.progress(), State::stuck);
  world[1].direct.reset();
  DirectMessage late(*world[2].direct, sendOf(in, 1));
  for (DirectMessage* each : {&send, &receive, &late}) {
    const auto state = each->progress();
    ASSERT_FALSE(state);
    EXPECT_EQ(state.error().code(), ErrorCode::remote);
  }
}

TEST(DirectMessage, WhyARankGaveUpBeforeItLeftIsForOthersToTell) {
  World world = worldOf(2);
  std::vector<std::byte> in(8);
  DirectMessage receive(*world[1].direct, receiveOf(in, 0));
  world[0].direct->board().giveUp();
  world[0].direct.reset();
  EXPECT_EQ(*receive.progress(), State::stuck);
}

TEST(DirectMessage, WhatWasSentBeforeLeavingStillArrives) {
  World world = worldOf(2);
  const std::vector<std::byte> out(8, std::byte{3});
  std::vector<std::byte> in(8);
  DirectMessage send(*world[0].direct, sendOf(out, 1)), receive(*world[1].direct, receiveOf(in, 0));
  ASSERT_EQ(*send.progress(), State::finished);
  world[0].direct.reset();
  EXPECT_EQ(*receive.progress(), State::finished);
  EXPECT_EQ(in, out);
}

// The sender comes and goes between two looks, at the first message and at the one after it.
TEST(DirectMessage, OneBehindAnotherThatWasSentBeforeLeavingStillArrives) {
  World world = worldOf(2);
  const std::vector<std::byte> first(8, std::byte{3}), second(8, std::byte{4});
  std::vector<std::byte> in(8), next(8);
  DirectMessage receive(*world[1].direct, receiveOf(in, 0)), receiveNext(*world[1].direct, receiveOf(next, 0));
  ASSERT_EQ(*receive.progress(), State::stuck);
  for (const auto* out : {&first, &second}) {
    DirectMessage send(*world[0].direct, sendOf(*out, 1));
    ASSERT_EQ(*send.progress(), State::finished);
  }
  world[0].direct.reset();
  const auto early = receiveNext.progress();
  ASSERT_TRUE(early) << early.error().message();
  ASSERT_EQ(*early, State::stuck);
  EXPECT_EQ(*receive.progress(), State::finished);
  EXPECT_EQ(*receiveNext.progress(), State::finished);
  EXPECT_EQ(in, first);
  EXPECT_EQ(next, second);
}

TEST(DirectMessage, WhatARankThatGaveUpHasInItsBufferIsNotTaken) {
  World world = worldOf(2);
  const std::vector<std::byte> out(messagePiece + 1);
  std::vector<std::byte> in(messagePiece + 1);
  DirectMessage send(*world[0].direct, sendOf(out, 1)), receive(*world[1].direct, receiveOf(in, 0));
  ASSERT_TRUE(send.progress());
  ASSERT_EQ(*receive.progress(), State::advanced);  // in the middle
  world[0].direct->board().giveUp();
  const auto state = receive.progress();
  ASSERT_FALSE(state);
  EXPECT_EQ(state.error().code(), ErrorCode::remote);
}

TEST(DirectMessage, AGroupMixesThemWithCollectives) {
  constexpr int ranks = 3;
  std::mt19937 random(7);
  for (const std::size_t bytes : {std::size_t{8}, room + 1, messagePiece + 1}) {
    World world = worldOf(ranks);
    std::vector<std::vector<std::byte>> out, in(ranks, std::vector<std::byte>(bytes)),
        sums(ranks, std::vector<std::byte>(64));
    std::vector<GroupRun> runs = test::freshRuns(ranks);
    std::vector<GroupRun*> all;
    for (Rank rank = 0; rank < ranks; ++rank) out.emplace_back(bytes, static_cast<std::byte>(rank + 1));
    for (Rank rank = 0; rank < ranks; ++rank) {
      sums[rank].assign(64, std::byte{1});
      const Call sum{Operation::allReduce, DataType::u8, ReduceOp::sum, sums[rank].data(), sums[rank].data(), 64};
      std::vector<Call> calls = {sendOf(out[rank], (rank + 1) % ranks), receiveOf(in[rank], (rank + 2) % ranks), sum};
      std::shuffle(calls.begin(), calls.end(), random);
      for (const Call& call : calls) ASSERT_TRUE(runs[rank].add(world[rank], call));
      ASSERT_TRUE(runs[rank].start());
      all.push_back(&runs[rank]);
    }
    ASSERT_TRUE(test::driveAll(all, 5));
    for (Rank rank = 0; rank < ranks; ++rank) {
      EXPECT_TRUE(runs[rank].outcome());
      EXPECT_EQ(in[rank], out[(rank + 2) % ranks]);
      EXPECT_EQ(sums[rank], std::vector(64, std::byte{3}));
    }
  }
}

/// Both ends tell what moved; who waited for whom is kept apart.
TEST(DirectMessage, TransfersAreRecordedAtBothEnds) {
  for (const std::size_t bytes : {std::size_t{8}, 2 * messagePiece + 3}) {
    World world = worldOf(2, {.recorded = true});
    const std::vector<std::byte> out(bytes);
    std::vector<std::byte> in(bytes);
    std::vector<GroupRun> runs = test::freshRuns(2);
    ASSERT_TRUE(runs[0].add(world[0], sendOf(out, 1)));
    ASSERT_TRUE(runs[1].add(world[1], receiveOf(in, 0)));
    for (GroupRun& run : runs) ASSERT_TRUE(run.start());
    for (int i = 0; i < 3; ++i) runs[0].progress();  // too early for the receiver
    ASSERT_TRUE(test::driveAll({&runs[0], &runs[1]}, 6));
    for (Rank rank = 0; rank < 2; ++rank) {
      const auto& timings = world.transfers[rank]->timings;
      ASSERT_EQ(timings.size(), 1u);
      EXPECT_EQ(timings[0].bytes, bytes);
      EXPECT_EQ(timings[0].peer, 1 - rank);
      EXPECT_EQ(timings[0].sending, rank == 0);
      EXPECT_LE(timings[0].start, timings[0].stop);
    }
    if (bytes > room) {
      EXPECT_GT(world.transfers[0]->timings[0].waiting.count(), 0);
      EXPECT_GT(world.transfers[0]->timings[0].moving.count(), 0);
    }
  }
}

}  // namespace
}  // namespace falcon::collectives
