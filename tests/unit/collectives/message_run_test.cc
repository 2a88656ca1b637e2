// The short way of messages: right around every edge, and at the other end it may be the long way.
#include "collectives/message_run.h"

#include <memory>
#include <random>

#include "harness/rank_buffers.h"
#include "world.h"

namespace falcon::collectives {
namespace {

using test::RankBuffers;
using test::World;

/// One rank's calls, the short or the long way.
class EitherWayOfRun {
 public:
  EitherWayOfRun(LocalMember& member, const std::vector<Call>& calls, bool isShort)
      : member_(member), isShort_(isShort) {
    if (isShort) member.messages.begin(member.ports);
    for (const Call& call : calls) {
      if (!isShort)
        note(long_.add(member, call));
      else
        note(isPointToPoint(call.operation) ? member.messages.add(member.shape, call)
                                            : member.messages.addExchange(member.shape, call));
    }
    if (!isShort) note(long_.start());
  }
  bool finished() const { return isShort_ ? member_.messages.finished() : long_.finished(); }
  /// True if anything moved.
  bool progress() {
    if (!isShort_) return long_.progress();
    const auto moved = member_.messages.progress();
    if (!moved) note(moved.error());
    return moved && *moved;
  }
  Status outcome() const { return status_ && !isShort_ ? long_.outcome() : status_; }

 private:
  void note(const Status& status) {
    if (status_) status_ = status;
  }

  LocalMember& member_;
  const bool isShort_;
  GroupRun long_{SystemClock::instance()};
  Status status_;
};

testing::AssertionResult drive(std::vector<std::unique_ptr<EitherWayOfRun>>& ranks, std::mt19937& random) {
  for (int idle = 0; idle < 20000;) {
    bool open = false;
    for (const auto& rank : ranks) {
      open |= !rank->finished();
      if (!rank->outcome()) return testing::AssertionFailure() << rank->outcome().error().message();
    }
    if (!open) return testing::AssertionSuccess();
    idle = ranks[random() % ranks.size()]->progress() ? 0 : idle + 1;
  }
  return testing::AssertionFailure() << "stuck";
}

constexpr std::size_t chunk = World::chunkBytes;
constexpr std::size_t edges[] = {0, 1, chunk - 1, chunk, chunk + 1, 8 * chunk, 9 * chunk + 3, 70 * chunk};

TEST(MessageRun, ExchangesAreRightWhicheverWayTheOthersGo) {
  std::mt19937 random(3);
  for (const int ranks : {2, 3, 5})
    for (const Operation operation : {Operation::allToAll, Operation::gather, Operation::scatter})
      for (const std::size_t count : edges)
        for (const bool inPlace : {false, true}) {
          if (inPlace && !test::canBeInPlace(operation)) continue;
          World world(1, ranks, static_cast<unsigned>(random()));
          Call call{operation, DataType::u8, ReduceOp::sum, nullptr, nullptr, count};
          if (operation != Operation::allToAll) call.peer = static_cast<Rank>(count % static_cast<std::size_t>(ranks));
          std::vector<RankBuffers> buffers;
          std::vector<std::unique_ptr<EitherWayOfRun>> runs;
          for (Rank rank = 0; rank < ranks; ++rank) buffers.emplace_back(call, rank, ranks, inPlace);
          for (Rank rank = 0; rank < ranks; ++rank)
            runs.push_back(std::make_unique<EitherWayOfRun>(world[rank], std::vector{buffers[rank].call()},
                                                            rank == 0 || random() % 2 == 0));
          ASSERT_TRUE(drive(runs, random)) << nameOf(operation) << " of " << count;
          for (const RankBuffers& each : buffers) ASSERT_TRUE(each.check());
          EXPECT_EQ(world.fabric.leftOver(), 0u);
        }
}

TEST(MessageRun, MessagesOfAnySizeKeepTheirOrderAmongAllPeers) {
  std::mt19937 random(4);
  constexpr int ranks = 3, messages = 6;
  for (int round = 0; round < 30; ++round) {
    World world(1, ranks, static_cast<unsigned>(random()));
    // sent[from][to][i] goes to received[from][to][i].
    std::vector<int> sent[ranks][ranks][messages], received[ranks][ranks][messages];
    std::vector<Call> calls[ranks];
    for (Rank from = 0; from < ranks; ++from)
      for (Rank to = 0; to < ranks; ++to) {
        if (from == to) continue;
        for (int i = 0; i < messages; ++i) {
          const std::size_t count = edges[random() % std::size(edges)] / sizeof(int);
          sent[from][to][i].resize(count);
          for (int& value : sent[from][to][i]) value = static_cast<int>(random());
          received[from][to][i].resize(count);
          auto& out = sent[from][to][i];
          auto& in = received[from][to][i];
          calls[from].push_back({Operation::send, DataType::i32, ReduceOp::sum, out.data(), nullptr, count, to});
          calls[to].push_back({Operation::receive, DataType::i32, ReduceOp::sum, nullptr, in.data(), count, from});
        }
      }
    std::vector<std::unique_ptr<EitherWayOfRun>> runs;
    for (Rank rank = 0; rank < ranks; ++rank)
      runs.push_back(
          std::make_unique<EitherWayOfRun>(world[rank], calls[rank], rank == round % ranks || random() % 2 == 0));
    ASSERT_TRUE(drive(runs, random));
    for (Rank from = 0; from < ranks; ++from)
      for (Rank to = 0; to < ranks; ++to)
        for (int i = 0; i < messages; ++i) EXPECT_EQ(sent[from][to][i], received[from][to][i]);
    EXPECT_EQ(world.fabric.leftOver(), 0u);
  }
}

TEST(MessageRun, ChunksAreAsSmallAsThoseOfMessagesAre) {
  test::Fabric fabric(2, 100, 1);  // the rest of the communicator has larger ones
  std::vector<int> sent(501), received(501);
  for (size_t i = 0; i < sent.size(); ++i) sent[i] = static_cast<int>(i);
  MemberShape shape{.rank = 0, .size = 2, .chunkBytes = 256};
  shape.messageChunkBytes = 100;
  MessageRun sending, receiving;
  sending.begin(fabric.portsOf(0));
  receiving.begin(fabric.portsOf(1));
  ASSERT_TRUE(sending.add(shape, {Operation::send, DataType::i32, ReduceOp::sum, sent.data(), nullptr, 501, 1}));
  shape.rank = 1;
  ASSERT_TRUE(
      receiving.add(shape, {Operation::receive, DataType::i32, ReduceOp::sum, nullptr, received.data(), 501, 0}));
  for (int turns = 0; turns < 20000 && !(sending.finished() && receiving.finished()); ++turns) {
    ASSERT_TRUE(sending.progress());
    ASSERT_TRUE(receiving.progress());
  }
  EXPECT_EQ(sent, received);
}

TEST(MessageRun, SizesThatDifferAreAnErrorOfTheReceiver) {
  World world(1, 2, 1);
  std::vector<int> data(8);
  const Call send{Operation::send, DataType::i32, ReduceOp::sum, data.data(), nullptr, 8, 1};
  const Call receive{Operation::receive, DataType::i32, ReduceOp::sum, nullptr, data.data(), 7, 0};
  std::vector<std::unique_ptr<EitherWayOfRun>> runs;
  runs.push_back(std::make_unique<EitherWayOfRun>(world[0], std::vector{send}, true));
  runs.push_back(std::make_unique<EitherWayOfRun>(world[1], std::vector{receive}, true));
  std::mt19937 random(1);
  EXPECT_FALSE(drive(runs, random));
  ASSERT_FALSE(runs[1]->outcome());
  EXPECT_EQ(runs[1]->outcome().error().code(), ErrorCode::invalidUsage);
}

}  // namespace
}  // namespace falcon::collectives
