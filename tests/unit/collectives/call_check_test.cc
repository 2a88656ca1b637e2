// With NCCL_FALCON_CHECK=1: right calls stay right, and a wrong one is named.
#include "collectives/call_check.h"

#include <gmock/gmock.h>

#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/log.h"
#include "collectives/group_run.h"
#include "harness/rank_buffers.h"
#include "unit/base/environment.h"
#include "world.h"

namespace falcon::collectives {
namespace {

using test::driveAll;
using test::freshRuns;
using test::RankBuffers;
using test::World;
using testing::AnyOf;
using testing::HasSubstr;

CallStatement reduceOf(std::size_t count, Rank root = 0, ReduceOp op = ReduceOp::sum) {
  return statementOf({Operation::reduce, DataType::f32, op, nullptr, nullptr, count, root}, 7);
}

TEST(CallStatement, KeepsWhatMattersForTheOperation) {
  EXPECT_EQ(describe(reduceOf(100, 2)), "ncclReduce of 100 float (sum) with root 2");
  EXPECT_EQ(describe(statementOf({Operation::allGather, DataType::i8, ReduceOp::max, nullptr, nullptr, 5}, 0)),
            "ncclAllGather of 5 int8");
  // What an operation does not have does not differ.
  const Call one{Operation::allGather, DataType::i8, ReduceOp::max, nullptr, nullptr, 5, 1};
  const Call two{Operation::allGather, DataType::i8, ReduceOp::sum, &one, nullptr, 5, -1};
  EXPECT_EQ(statementOf(one, 3), statementOf(two, 3));
}

TEST(CompareCollectives, NamesTheOneThatDiffers) {
  std::vector<CallStatement> statements(5, reduceOf(10));
  EXPECT_TRUE(compareCollectives(statements));
  statements[3] = reduceOf(11);
  const Status differ = compareCollectives(statements);
  ASSERT_FALSE(differ);
  EXPECT_EQ(differ.error().code(), ErrorCode::invalidUsage);
  EXPECT_THAT(differ.error().message(), HasSubstr("collective 7"));
  EXPECT_THAT(
      differ.error().message(),
      HasSubstr("ncclReduce of 11 float (sum) with root 0 on rank 3, but ncclReduce of 10 float (sum) with root 0 "
                "on rank 0"));
  // The first one may be the odd one.
  statements.assign(5, reduceOf(10));
  statements[0] = reduceOf(10, 1);
  EXPECT_THAT(compareCollectives(statements).error().message(), HasSubstr("root 1 on rank 0"));
  for (const CallStatement& other :
       {reduceOf(10, 0, ReduceOp::max),
        statementOf({Operation::reduce, DataType::f16, ReduceOp::sum, nullptr, nullptr, 10, 0}, 7),
        statementOf({Operation::broadcast, DataType::f32, ReduceOp::sum, nullptr, nullptr, 10, 0}, 7)}) {
    statements.assign(3, reduceOf(10));
    statements[1] = other;
    EXPECT_THAT(compareCollectives(statements).error().message(), HasSubstr(describe(other) + " on rank 1"));
  }
}

TEST(CheckedGroup, RightCallsAreAsRightAsEver) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    constexpr int ranks = 3;
    World world(1, ranks, seed, {.checksCalls = true});
    const Call calls[] = {{Operation::allReduce, DataType::f32, ReduceOp::sum, nullptr, nullptr, 700},
                          {Operation::allGather, DataType::u8, ReduceOp::sum, nullptr, nullptr, 0},
                          {Operation::gather, DataType::u8, ReduceOp::sum, nullptr, nullptr, 300, 1},
                          {Operation::broadcast, DataType::i64, ReduceOp::sum, nullptr, nullptr, 500, 2}};
    std::vector<RankBuffers> buffers;
    buffers.reserve(std::size(calls) * ranks);
    std::vector<std::vector<int>> messages(ranks, std::vector<int>(100));
    std::vector<int> nothing;
    auto runs = freshRuns(ranks);
    std::vector<GroupRun*> all;
    for (Rank rank = 0; rank < ranks; ++rank) {
      for (const Call& call : calls) {
        buffers.emplace_back(call, rank, ranks, false);
        ASSERT_TRUE(runs[rank].add(world[rank], buffers.back().call()));
      }
      messages[rank].assign(100, rank);
      const auto message = [&](Operation operation, std::vector<int>& data, Rank peer) {
        const Call call{operation, DataType::i32, ReduceOp::sum, data.data(), data.data(), data.size(), peer};
        ASSERT_TRUE(runs[rank].add(world[rank], call));
      };
      if (rank == 0) message(Operation::send, messages[0], 1), message(Operation::send, nothing, 1);
      if (rank == 1) message(Operation::receive, messages[1], 0), message(Operation::receive, nothing, 0);
      ASSERT_TRUE(runs[rank].start());
      all.push_back(&runs[rank]);
    }
    ASSERT_TRUE(driveAll(all, seed));
    for (const RankBuffers& rank : buffers) EXPECT_TRUE(rank.check());
    EXPECT_EQ(messages[1], std::vector<int>(100, 0));
    for (const GroupRun& run : runs) EXPECT_TRUE(run.outcome());
    EXPECT_EQ(world.fabric.leftOver(), 0u);
  }
}

/// Runs one call a rank; what every rank has got.
std::vector<Status> outcomesOf(const std::vector<Call>& calls, unsigned seed) {
  const int ranks = static_cast<int>(calls.size());
  World world(1, ranks, seed, {.checksCalls = true});
  std::vector<std::vector<std::byte>> memory(2 * calls.size(), std::vector<std::byte>(1 << 16));
  auto runs = freshRuns(ranks);
  std::vector<GroupRun*> all;
  for (Rank rank = 0; rank < ranks; ++rank) {
    Call call = calls[rank];
    call.send = memory[2 * rank].data();
    call.receive = memory[2 * rank + 1].data();
    EXPECT_TRUE(runs[rank].add(world[rank], call));
    EXPECT_TRUE(runs[rank].start());
    all.push_back(&runs[rank]);
  }
  EXPECT_TRUE(driveAll(all, seed));
  std::vector<Status> outcomes;
  for (const GroupRun& run : runs) outcomes.push_back(run.outcome());
  return outcomes;
}

TEST(CheckedGroup, AWrongCallIsNamedOnEveryRank) {
  const Call sum{Operation::allReduce, DataType::f32, ReduceOp::sum, nullptr, nullptr, 100};
  Call less = sum, other = sum, type = sum;
  less.count = 99;
  other.operation = Operation::broadcast, other.peer = 0;
  type.type = DataType::i32;
  for (const Call& wrong : {less, other, type})
    for (Rank odd = 0; odd < 3; ++odd)
      for (unsigned seed = 0; seed < 5; ++seed) {
        std::vector<Call> calls(3, sum);
        calls[odd] = wrong;
        for (const Status& outcome : outcomesOf(calls, seed)) {
          ASSERT_FALSE(outcome);
          EXPECT_THAT(outcome.error().code(), AnyOf(ErrorCode::invalidUsage, ErrorCode::remote));
          EXPECT_THAT(outcome.error().message(),
                      HasSubstr(describe(statementOf(wrong, 0)) + " on rank " + std::to_string(odd)));
        }
      }
}

/// What is logged while it lives.
class LogText {
 public:
  LogText() { log::reset(); }
  ~LogText() {
    std::filesystem::remove(path_);
    log::reset();
  }
  std::string text() const {
    std::ifstream file(path_);
    return {std::istreambuf_iterator<char>(file), {}};
  }

 private:
  // Another name each time: a log file in use stays in use, removed or not.
  static inline int number_ = 0;
  const std::string path_ = fmt::format("{}falcon-check-{}-{}", testing::TempDir(), getpid(), ++number_);
  const Variable debug_{"NCCL_DEBUG", "WARN"}, file_{"NCCL_DEBUG_FILE", path_.c_str()};
};

TEST(CheckedGroup, ARankThatDoesNotComeIsNamedByEveryoneOnce) {
  constexpr int ranks = 4;
  for (Rank late = 0; late < ranks; ++late) {
    const LogText log;
    ManualClock clock;
    World world(1, ranks, 1, {.checksCalls = true});
    const Call sum{Operation::allReduce, DataType::f32, ReduceOp::sum, nullptr, nullptr, 100};
    std::vector<RankBuffers> buffers;
    std::vector<GroupRun> runs;
    for (Rank rank = 0; rank < ranks; ++rank) {
      buffers.emplace_back(sum, rank, ranks, false);
      runs.emplace_back(clock);
      ASSERT_TRUE(runs[rank].add(world[rank], buffers[rank].call()));
    }
    const auto turns = [&] {
      for (int turn = 0; turn < 200; ++turn)
        for (Rank rank = 0; rank < ranks; ++rank)
          if (rank != late) runs[rank].progress();
    };
    for (Rank rank = 0; rank < ranks; ++rank) {
      if (rank != late) {
        ASSERT_TRUE(runs[rank].start());
      }
    }
    turns();
    clock.advance(5s);
    turns();
    EXPECT_EQ(log.text(), "") << "too early";
    clock.advance(6s);
    turns();
    clock.advance(60s);
    turns();
    for (Rank rank = 0; rank < ranks; ++rank) {
      const std::string said = fmt::format(
          "rank {} has not come to collective 0 of the communicator, which rank {} began 11 s ago with "
          "ncclAllReduce of 100 float (sum); still waiting\n",
          late, rank);
      const std::string text = log.text();
      const auto at = text.find(said);
      EXPECT_EQ(at != std::string::npos, rank != late) << text;
      EXPECT_TRUE(at == std::string::npos || text.find(said, at + 1) == std::string::npos) << "said twice\n" << text;
    }
    // To come late is no error.
    ASSERT_TRUE(runs[late].start());
    std::vector<GroupRun*> all;
    for (GroupRun& run : runs) all.push_back(&run);
    ASSERT_TRUE(driveAll(all, 1));
    for (const RankBuffers& rank : buffers) EXPECT_TRUE(rank.check());
  }
}

TEST(CheckedGroup, AMessageThatDoesNotComeIsNamed) {
  const LogText log;
  ManualClock clock;
  World world(1, 2, 1, {.checksCalls = true});
  int value = 0;
  GroupRun run(clock);
  ASSERT_TRUE(run.add(world[1], {Operation::receive, DataType::i32, ReduceOp::sum, nullptr, &value, 1, 0}));
  ASSERT_TRUE(run.start());
  run.progress();
  clock.advance(11s);
  run.progress();
  EXPECT_THAT(log.text(), HasSubstr("rank 0 has not sent message 0 to rank 1, which waits for it since 11 s with "
                                    "ncclRecv of 1 int32; still waiting"));
}

TEST(CheckedGroup, AWrongMessageIsNamed) {
  for (const auto& [sent, received] : {std::pair<std::size_t, std::size_t>{10, 11}, {0, 5}, {5, 0}}) {
    const auto outcomes =
        outcomesOf({{Operation::send, DataType::i32, ReduceOp::sum, nullptr, nullptr, sent, 1},
                    {Operation::receive, DataType::i32, ReduceOp::sum, nullptr, nullptr, received, 0}},
                   3);
    // Who sends little may have done so before the receiver looks.
    ASSERT_FALSE(outcomes[1]);
    EXPECT_EQ(outcomes[1].error().code(), ErrorCode::invalidUsage);
    EXPECT_THAT(outcomes[1].error().message(),
                HasSubstr("message 0 from rank 0 to rank 1 is sent by ncclSend of " + std::to_string(sent) +
                          " int32, but received by ncclRecv of " + std::to_string(received)));
  }
}

}  // namespace
}  // namespace falcon::collectives
