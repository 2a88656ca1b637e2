// Groups: what runs together, what keeps its order, what is refused, and what a broken communicator does to the others.
#include "collectives/group_run.h"

#include "direct_members.h"
#include "harness/rank_buffers.h"
#include "world.h"

namespace falcon::collectives {
namespace {

using test::driveAll;
using test::freshRuns;
using test::RankBuffers;
using test::World;

const Clock& systemClock() {
  return SystemClock::instance();
}

Call message(Operation operation, std::vector<int>& data, Rank peer) {
  return {operation, DataType::i32, ReduceOp::sum, data.data(), data.data(), data.size(), peer};
}

TEST(GroupRun, CommunicatorsMayBeSubmittedInDifferentOrders) {
  for (unsigned seed = 0; seed < 30; ++seed) {
    constexpr int ranks = 3;
    World one(1, ranks, seed), two(2, ranks, seed + 100);
    const Call sum{Operation::allReduce, DataType::f32, ReduceOp::sum, nullptr, nullptr, 700};
    const Call gather{Operation::allGather, DataType::u8, ReduceOp::sum, nullptr, nullptr, 900};
    std::vector<RankBuffers> sums, gathers, seconds;
    auto runs = freshRuns(ranks);
    for (Rank rank = 0; rank < ranks; ++rank) {
      sums.emplace_back(sum, rank, ranks, false);
      seconds.emplace_back(sum, rank, ranks, true);
      gathers.emplace_back(gather, rank, ranks, false);
      if (rank % 2 == 0) {
        ASSERT_TRUE(runs[rank].add(two[rank], gathers[rank].call()));
      }
      ASSERT_TRUE(runs[rank].add(one[rank], sums[rank].call()));
      ASSERT_TRUE(runs[rank].add(one[rank], seconds[rank].call()));
      if (rank % 2 == 1) {
        ASSERT_TRUE(runs[rank].add(two[rank], gathers[rank].call()));
      }
      ASSERT_TRUE(runs[rank].start());
    }
    ASSERT_TRUE(driveAll({&runs[0], &runs[1], &runs[2]}, seed));
    for (Rank rank = 0; rank < ranks; ++rank) {
      EXPECT_TRUE(runs[rank].outcome());
      EXPECT_TRUE(sums[rank].check());
      EXPECT_TRUE(seconds[rank].check());
      EXPECT_TRUE(gathers[rank].check());
      EXPECT_EQ(one[rank].nextCollective, 2u);
    }
  }
}

TEST(GroupRun, SeveralLocalRanksMayBeInOneGroup) {
  constexpr int ranks = 4;
  World world(1, ranks, 5);
  const Call call{Operation::allReduce, DataType::i64, ReduceOp::sum, nullptr, nullptr, 1000};
  std::vector<RankBuffers> buffers;
  GroupRun run(systemClock());
  for (Rank rank = 0; rank < ranks; ++rank) {
    buffers.emplace_back(call, rank, ranks, true);
    ASSERT_TRUE(run.add(world[rank], buffers[rank].call()));
  }
  ASSERT_TRUE(run.start());
  ASSERT_TRUE(driveAll({&run}, 1));
  for (const RankBuffers& rank : buffers) EXPECT_TRUE(rank.check());
}

TEST(GroupRun, MessagesToOnePeerKeepTheirOrderAndOthersNeedNone) {
  for (unsigned seed = 0; seed < 30; ++seed) {
    World world(1, 2, seed);
    std::vector<int> long0(500, 1), short0(1, 2), from1(300, 3);
    std::vector<int> in0(300, 0), longIn1(500, 0), shortIn1(1, 0);
    GroupRun zero(systemClock()), one(systemClock());
    ASSERT_TRUE(zero.add(world[0], message(Operation::send, long0, 1)));
    ASSERT_TRUE(zero.add(world[0], message(Operation::send, short0, 1)));
    ASSERT_TRUE(zero.add(world[0], message(Operation::receive, in0, 1)));
    // The other side sends first; more than a connection's credit is under way both ways.
    ASSERT_TRUE(one.add(world[1], message(Operation::send, from1, 0)));
    ASSERT_TRUE(one.add(world[1], message(Operation::receive, longIn1, 0)));
    ASSERT_TRUE(one.add(world[1], message(Operation::receive, shortIn1, 0)));
    ASSERT_TRUE(zero.start());
    ASSERT_TRUE(one.start());
    ASSERT_TRUE(driveAll({&zero, &one}, seed));
    EXPECT_EQ(in0, from1);
    EXPECT_EQ(longIn1, long0);
    EXPECT_EQ(shortIn1, short0);
    EXPECT_EQ(world[0].sent[1], 2u);
    EXPECT_EQ(world[0].received[1], 1u);
  }
}

TEST(GroupRun, MessagesToOneselfArePairedInOrder) {
  for (const int ranks : {1, 3}) {
    World world(1, ranks, 1);
    std::vector<int> first(100, 1), second(7, 2), empty;
    std::vector<int> firstIn(100, 0), secondIn(7, 0);
    GroupRun run(systemClock());
    const Rank self = ranks - 1;
    ASSERT_TRUE(run.add(world[self], message(Operation::receive, firstIn, self)));
    ASSERT_TRUE(run.add(world[self], message(Operation::send, first, self)));
    ASSERT_TRUE(run.add(world[self], message(Operation::send, second, self)));
    ASSERT_TRUE(run.add(world[self], message(Operation::receive, secondIn, self)));
    ASSERT_TRUE(run.add(world[self], message(Operation::send, empty, self)));
    ASSERT_TRUE(run.add(world[self], message(Operation::receive, empty, self)));
    ASSERT_TRUE(run.start());
    ASSERT_TRUE(driveAll({&run}, 1));
    EXPECT_EQ(firstIn, first);
    EXPECT_EQ(secondIn, second);
  }
}

TEST(GroupRun, RefusesAMessageToOneselfWithoutCounterpart) {
  World world(1, 2, 1);
  std::vector<int> data(5), other(6);
  GroupRun alone(systemClock());
  ASSERT_TRUE(alone.add(world[0], message(Operation::send, data, 0)));
  EXPECT_EQ(alone.start().error().code(), ErrorCode::invalidUsage);
  GroupRun unequal(systemClock());
  ASSERT_TRUE(unequal.add(world[0], message(Operation::send, data, 0)));
  ASSERT_TRUE(unequal.add(world[0], message(Operation::receive, other, 0)));
  EXPECT_EQ(unequal.start().error().code(), ErrorCode::invalidUsage);
  // Nothing has happened: the communicator works and its numbers stand where they were.
  EXPECT_TRUE(world[0].health());
  EXPECT_EQ(world[0].sent[0], 0u);
}

TEST(GroupRun, RefusesWhatItCannotDo) {
  World world(1, 2, 1);
  float data[4] = {};
  GroupRun run(systemClock());
  const auto codeOf = [&](const Call& call) { return run.add(world[0], call).error().code(); };
  EXPECT_EQ(codeOf({Operation::broadcast, DataType::f32, ReduceOp::sum, data, data, 4, 2}), ErrorCode::invalidArgument);
  EXPECT_EQ(codeOf({Operation::send, DataType::f32, ReduceOp::sum, data, nullptr, 4, -1}), ErrorCode::invalidArgument);
  EXPECT_EQ(codeOf({Operation::allReduce, DataType::f32, ReduceOp::sum, data, nullptr, 4}), ErrorCode::invalidArgument);
  EXPECT_EQ(codeOf({Operation::allGather, DataType::f64, ReduceOp::sum, data, data, std::size_t{1} << 59}),
            ErrorCode::invalidArgument);
  EXPECT_EQ(codeOf({Operation::allToAll, DataType::f32, ReduceOp::sum, data, data, 2}), ErrorCode::invalidArgument);
  EXPECT_TRUE(run.add(world[0], {Operation::allGather, DataType::f8e5m2, ReduceOp::sum, data, data, 2}));
  EXPECT_TRUE(run.add(world[0], {Operation::reduce, DataType::f32, ReduceOp::sum, data, nullptr, 4, 1}));
  EXPECT_TRUE(run.add(world[0], {Operation::broadcast, DataType::f32, ReduceOp::sum, nullptr, data, 4, 1}));
}

TEST(GroupRun, ABrokenCommunicatorLosesItsCallsAndTheOthersGoOn) {
  World good(1, 2, 1), bad(2, 2, 2);
  const Call call{Operation::allReduce, DataType::f32, ReduceOp::sum, nullptr, nullptr, 500};
  std::vector<RankBuffers> right, lost;
  auto runs = freshRuns(2);
  for (Rank rank = 0; rank < 2; ++rank) {
    right.emplace_back(call, rank, 2, false);
    lost.emplace_back(call, rank, 2, false);
    ASSERT_TRUE(runs[rank].add(bad[rank], lost[rank].call()));
    ASSERT_TRUE(runs[rank].add(good[rank], right[rank].call()));
    ASSERT_TRUE(runs[rank].start());
  }
  for (int i = 0; i < 5; ++i) runs[0].progress();
  bad.fabric.breakLine(0, 1, Error::remote("rank 1 has left"));
  ASSERT_TRUE(driveAll({&runs[0], &runs[1]}, 3));
  for (Rank rank = 0; rank < 2; ++rank) {
    EXPECT_TRUE(right[rank].check());
    EXPECT_EQ(runs[rank].outcome().error().code(), ErrorCode::remote);
    EXPECT_FALSE(bad[rank].health());
    EXPECT_TRUE(good[rank].health());
    GroupRun later(systemClock());
    EXPECT_EQ(later.add(bad[rank], lost[rank].call()).error().message(), runs[rank].outcome().error().message());
  }
}

TEST(GroupRun, AFailureOfTheNetworkEndsAWait) {
  World world(1, 2, 1);
  std::vector<int> data(5);
  GroupRun run(systemClock());
  ASSERT_TRUE(run.add(world[0], message(Operation::receive, data, 1)));
  ASSERT_TRUE(run.start());
  for (int i = 0; i < 100; ++i) run.progress();
  ASSERT_FALSE(run.finished());
  *world.failure = Error::remote("rank 1 died");
  run.progress();
  ASSERT_TRUE(run.finished());
  EXPECT_EQ(run.outcome().error().message(), "rank 1 died");
}

TEST(GroupRun, CollectivesWaitForAnUndecidedRingAndUseTheNewOne) {
  constexpr int ranks = 4;
  World world(1, ranks, 1);
  const Call call{Operation::broadcast, DataType::u8, ReduceOp::sum, nullptr, nullptr, 400, 0};
  const std::vector<Rank> order = {0, 2, 1, 3};
  std::vector<RankBuffers> first, second;
  auto runs = freshRuns(ranks);
  std::vector<GroupRun*> all;
  for (Rank rank = 0; rank < ranks; ++rank) {
    ASSERT_TRUE(world[rank].rings.propose(1, order));
    first.emplace_back(call, rank, ranks, false);
    second.emplace_back(call, rank, ranks, false);
    ASSERT_TRUE(runs[rank].add(world[rank], first[rank].call()));
    ASSERT_TRUE(runs[rank].add(world[rank], second[rank].call()));
    ASSERT_TRUE(runs[rank].start());
    all.push_back(&runs[rank]);
  }
  EXPECT_FALSE(driveAll(all, 1, 2000)) << "the second collective must wait";
  for (const RankBuffers& rank : first) EXPECT_TRUE(rank.check());
  EXPECT_EQ(world.fabric.bytes(0, 1), 400u);
  EXPECT_EQ(world.fabric.bytes(0, 2), 0u);
  for (Rank rank = 0; rank < ranks; ++rank) world[rank].rings.decide(1, true);
  ASSERT_TRUE(driveAll(all, 2));
  for (const RankBuffers& rank : second) EXPECT_TRUE(rank.check());
  EXPECT_EQ(world.fabric.bytes(0, 1), 400u);
  EXPECT_EQ(world.fabric.bytes(0, 2), 400u);
}

TEST(GroupRun, RecordsCallsAndTransfers) {
  constexpr int ranks = 3;
  World world(77, ranks, 4, {.recorded = true});
  const Call call{Operation::allReduce, DataType::f32, ReduceOp::avg, nullptr, nullptr, 20'000};
  for (int round = 0; round < 2; ++round) {
    std::vector<RankBuffers> buffers;
    auto runs = freshRuns(ranks);
    for (Rank rank = 0; rank < ranks; ++rank) {
      buffers.emplace_back(call, rank, ranks, false);
      ASSERT_TRUE(runs[rank].add(world[rank], buffers[rank].call()));
      ASSERT_TRUE(runs[rank].start());
    }
    ASSERT_TRUE(driveAll({&runs[0], &runs[1], &runs[2]}, 1));
    for (Rank rank = 0; rank < ranks; ++rank) runs[rank].record(Nanoseconds(10), Nanoseconds(20));
  }
  for (Rank rank = 0; rank < ranks; ++rank) {
    const auto& records = world.calls[rank]->records;
    ASSERT_EQ(records.size(), 2u);
    EXPECT_EQ(records[1].communicator, 77u);
    EXPECT_EQ(records[1].sequence, 1u);
    EXPECT_EQ(records[1].operation, Operation::allReduce);
    EXPECT_EQ(records[1].reduction, ReduceOp::avg);
    EXPECT_EQ(records[1].count, 20000u);
    EXPECT_EQ(records[1].enter, Nanoseconds(10));
    EXPECT_EQ(records[1].leave, Nanoseconds(20));
    std::size_t sent = 0, received = 0;
    for (const TransferTiming& timing : world.transfers[rank]->timings) {
      EXPECT_EQ(timing.peer, timing.sending ? (rank + 1) % ranks : (rank + ranks - 1) % ranks);
      EXPECT_LE(timing.start, timing.stop);
      EXPECT_LE(timing.moving + timing.waiting, timing.stop - timing.start);
      (timing.sending ? sent : received) += timing.bytes;
    }
    EXPECT_EQ(sent, world.fabric.bytes(rank, (rank + 1) % ranks));
    EXPECT_EQ(received, world.fabric.bytes((rank + ranks - 1) % ranks, rank));
  }
}

TEST(GroupRun, RecordsWhatWasReadFromPeers) {
  constexpr int ranks = 3;
  World world(77, ranks, 4, {.recorded = true});
  auto direct = test::directMembers(ranks, test::Access::memory);
  for (Rank rank = 0; rank < ranks; ++rank) world[rank].direct = std::move(direct[rank]);
  const Call call{Operation::allGather, DataType::u8, ReduceOp::sum, nullptr, nullptr, 100'000};
  std::vector<RankBuffers> buffers;
  auto runs = freshRuns(ranks);
  for (Rank rank = 0; rank < ranks; ++rank) {
    buffers.emplace_back(call, rank, ranks, false);
    ASSERT_TRUE(runs[rank].add(world[rank], buffers[rank].call()));
    ASSERT_TRUE(runs[rank].start());
  }
  ASSERT_TRUE(driveAll({&runs[0], &runs[1], &runs[2]}, 1));
  for (Rank rank = 0; rank < ranks; ++rank) {
    EXPECT_TRUE(buffers[rank].check());
    EXPECT_EQ(world.fabric.bytes(rank, (rank + 1) % ranks), 0u) << "over connections";
    ASSERT_EQ(world.transfers[rank]->timings.size(), 2u);
    for (const TransferTiming& timing : world.transfers[rank]->timings) {
      EXPECT_FALSE(timing.sending);
      EXPECT_EQ(timing.bytes, 100'000u);
      EXPECT_GT(timing.moving, Nanoseconds(0));
      EXPECT_LE(timing.moving + timing.waiting, timing.stop - timing.start);
    }
  }
}

}  // namespace
}  // namespace falcon::collectives
