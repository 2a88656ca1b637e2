// Every collective without connections against the oracle: all ranks in one thread, in an order drawn from a seed.
#include <optional>
#include <random>
#include <set>
#include <thread>

#include "collectives/algorithm_choice.h"
#include "collectives/direct_plan.h"
#include "collectives/single_call.h"
#include "direct_members.h"
#include "harness/rank_buffers.h"
#include "harness/thoroughness.h"
#include "transport/local_ports.h"
#include "world.h"

namespace falcon::collectives {
namespace {

using test::Access;
using test::DirectMembers;
using test::directMembers;
using test::RankBuffers;
using transport::NodeBoard;

constexpr std::size_t piece = DirectMember::pieceBytes;

constexpr Operation operations[] = {Operation::allReduce, Operation::broadcast,     Operation::reduce,
                                    Operation::allGather, Operation::reduceScatter, Operation::allToAll,
                                    Operation::gather,    Operation::scatter};

bool hasRoot(Operation operation) {
  return operation == Operation::broadcast || operation == Operation::reduce || operation == Operation::gather ||
         operation == Operation::scatter;
}
bool hasBlocks(Operation operation) {
  return operation != Operation::allReduce && operation != Operation::broadcast && operation != Operation::reduce;
}

/// Turns in random order until all have finished.
testing::AssertionResult driveDirect(std::vector<DirectRunner> runners, unsigned seed) {
  std::mt19937 random(seed);
  int idle = 0;
  while (!runners.empty()) {
    const size_t pick = random() % runners.size();
    const auto state = runners[pick].progress();
    if (!state) return testing::AssertionFailure() << state.error().message();
    if (*state == DirectRunner::State::finished) runners.erase(runners.begin() + static_cast<std::ptrdiff_t>(pick));
    idle = *state == DirectRunner::State::stuck ? idle + 1 : 0;
    if (idle > 10000) return testing::AssertionFailure() << runners.size() << " ranks are stuck for ever";
  }
  return testing::AssertionSuccess();
}

struct Setting {
  int ranks;
  bool coresSuffice;
};

class Direct : public testing::TestWithParam<Setting> {
 protected:
  int ranks() const { return GetParam().ranks; }

  /// With every algorithm that there is for it.
  testing::AssertionResult isRight(const Call& call, bool inPlace) {
    std::set<const DirectAlgorithm*> algorithms;
    for (const DirectRow& row : directTable())
      if (row.operation == call.operation && row.algorithm) algorithms.insert(row.algorithm);
    for (const DirectAlgorithm* algorithm : algorithms)
      if (auto right = isRight(call, inPlace, *algorithm); !right) return right << ", " << algorithm->name;
    return testing::AssertionSuccess();
  }
  testing::AssertionResult isRight(const Call& call, bool inPlace, const DirectAlgorithm& algorithm) {
    std::vector<RankBuffers> buffers;
    std::vector<DirectRunner> runners;
    for (Rank rank = 0; rank < ranks(); ++rank) {
      buffers.emplace_back(call, rank, ranks(), inPlace);
      auto runner = planDirect(*members[rank], {.rank = rank, .size = ranks()}, buffers[rank].call(), algorithm);
      if (!runner) return testing::AssertionFailure() << nameOf(call.operation) << " cannot be planned";
      runners.push_back(std::move(*runner));
    }
    if (auto ran = driveDirect(std::move(runners), ++seed); !ran) return ran;
    for (const RankBuffers& each : buffers)
      if (auto right = each.check(); !right) return right << (inPlace ? ", in place" : "");
    return testing::AssertionSuccess();
  }

  DirectMembers members = directMembers(ranks(), Access::memory, GetParam().coresSuffice);
  const std::size_t payload = members[0]->inlineBytes();  // of the board
  unsigned seed = 1;
};

TEST_P(Direct, EveryCollectiveIsRightAroundEveryEdge) {
  const auto size = static_cast<std::size_t>(ranks());
  for (const Operation operation : operations) {
    std::vector<std::size_t> bytes = {1,
                                      NodeBoard::lineBytes,
                                      NodeBoard::lineBytes + 1,
                                      63,
                                      64,
                                      65,
                                      NodeBoard::slotBytes,
                                      NodeBoard::slotBytes + 1,
                                      payload / size,
                                      payload / size + 1,
                                      payload - 1,
                                      payload,
                                      payload + 1,
                                      payload + 64 * size,
                                      payload / 2,
                                      payload / 2 + 1};
    // Short ones go as with cores of their own, and the board holds eight times as much: only its edges.
    if (!GetParam().coresSuffice) bytes = {NodeBoard::slotBytes + 1, payload / size + 1, payload, payload + 1};
    // The oracle's work grows with the square of the ranks.
    if (ranks() <= 4 && GetParam().coresSuffice)
      bytes.insert(bytes.end(), {piece - 1, piece, piece + 1, size * piece + 1, 5 * piece + 7});
    if (!GetParam().coresSuffice) bytes.insert(bytes.end(), {2 * payload + 1});
    for (const std::size_t count : bytes)
      for (const bool inPlace : {false, true}) {
        if (inPlace && !test::canBeInPlace(operation)) continue;
        Call call{operation, DataType::u8, ReduceOp::sum, nullptr, nullptr, count};
        if (hasBlocks(operation) && count > payload) call.count = count / size + 1;
        if (hasRoot(operation)) call.peer = static_cast<Rank>(count % size);
        ASSERT_TRUE(isRight(call, inPlace));
      }
  }
}

TEST_P(Direct, EveryTypeAndReductionIsRight) {
  for (int type = 0; type < dataTypeCount; ++type)
    for (int op = 0; op < reduceOpCount; ++op)
      for (const Operation operation : {Operation::allReduce, Operation::reduceScatter, Operation::reduce})
        for (const std::size_t count : {std::size_t{3}, payload / sizeOf(static_cast<DataType>(type)) + 5}) {
          // Which way it goes does not depend on the reduction; the board of ranks that share cores holds much.
          if (!GetParam().coresSuffice && static_cast<ReduceOp>(op) != ReduceOp::sum) continue;
          Call call{operation, static_cast<DataType>(type), static_cast<ReduceOp>(op), nullptr, nullptr, count};
          if (operation == Operation::reduceScatter) call.count = count / ranks() + 1;
          if (operation == Operation::reduce) call.peer = ranks() - 1;
          if (!combineKernel(call.type, call.reduction)) continue;
          ASSERT_TRUE(isRight(call, op % 2 == 0));
        }
}

TEST_P(Direct, CallsThatDoNotFitAreAnError) {
  float data[8] = {};
  const auto runner = [&](Rank rank, std::size_t count, ReduceOp op) {
    const Call call{Operation::allReduce, DataType::f32, op, data, data, count};
    return *planDirect(*members[rank], {.rank = rank, .size = ranks()}, call);
  };
  std::vector<DirectRunner> runners;
  for (Rank rank = 0; rank < ranks(); ++rank) runners.push_back(runner(rank, rank == 1 ? 7 : 8, ReduceOp::sum));
  for (DirectRunner& each : runners) static_cast<void>(each.progress());
  for (DirectRunner& each : runners) {
    const auto state = each.progress();
    ASSERT_FALSE(state);
    EXPECT_EQ(state.error().code(), ErrorCode::invalidUsage);
  }
}

/// Where a broadcast is read from the root's memory.
class DirectFromMemory : public Direct {};

TEST_P(DirectFromMemory, ARankThatLeavesIsAnErrorForThoseWhoWaitForIt) {
  std::vector<std::byte> data(payload + 1);
  const Call call{Operation::broadcast, DataType::u8, ReduceOp::sum, data.data(), data.data(), data.size(), 0};
  auto root = planDirect(*members[0], {.rank = 0, .size = ranks()}, call);
  ASSERT_TRUE(root);
  EXPECT_EQ(*root->progress(), DirectRunner::State::advanced);
  EXPECT_EQ(*root->progress(), DirectRunner::State::stuck);
  members[ranks() - 1].reset();
  for (Rank rank = 1; rank + 1 < ranks(); ++rank) {
    auto runner = planDirect(*members[rank], {.rank = rank, .size = ranks()}, call);
    EXPECT_EQ(*runner->progress(), DirectRunner::State::finished);
  }
  const auto state = root->progress();
  ASSERT_FALSE(state);
  EXPECT_EQ(state.error().code(), ErrorCode::remote);
}

TEST_P(DirectFromMemory, WhatARankThatGaveUpHasInItsBuffersIsNotTaken) {
  std::vector<std::byte> data(payload + 1);
  const Call call{Operation::broadcast, DataType::u8, ReduceOp::sum, data.data(), data.data(), data.size(), 0};
  auto root = planDirect(*members[0], {.rank = 0, .size = ranks()}, call);
  ASSERT_TRUE(root->progress());
  members[0]->board().giveUp();
  auto reader = planDirect(*members[1], {.rank = 1, .size = ranks()}, call);
  const auto state = reader->progress();
  ASSERT_FALSE(state);
  EXPECT_EQ(state.error().code(), ErrorCode::remote);
}

std::vector<Setting> settings(std::vector<bool> coresSuffice) {
  std::vector<Setting> all;
  for (const int ranks : falcon::test::isSampled() ? std::vector{2, 3, 5} : std::vector{2, 3, 4, 5, 8})
    for (const bool suffice : coresSuffice) all.push_back({ranks, suffice});
  return all;
}
std::string settingName(const testing::TestParamInfo<Setting>& instance) {
  return std::to_string(instance.param.ranks) + (instance.param.coresSuffice ? "" : "SharingCores");
}
INSTANTIATE_TEST_SUITE_P(Ranks, Direct, testing::ValuesIn(settings({true, false})), settingName);
INSTANTIATE_TEST_SUITE_P(Ranks, DirectFromMemory, testing::ValuesIn(settings({true})), settingName);

// As in a job: each rank runs its calls on a thread of its own, and sleeps when it waits for long.
TEST_P(Direct, RanksOnThreadsRunAnySequence) {
  test::World world(1, ranks(), 1);
  for (Rank rank = 0; rank < ranks(); ++rank) world[rank].direct = std::move(members[rank]);
  std::vector<std::string> wrong(ranks());
  std::vector<int> ran(ranks());
  std::vector<std::thread> threads;
  for (Rank rank = 0; rank < ranks(); ++rank)
    threads.emplace_back([&, rank] {
      const auto waiter = transport::makeWaiter();
      std::mt19937 common(99), own(static_cast<unsigned>(rank));
      for (int round = 0; round < 100 && wrong[rank].empty(); ++round) {
        const std::size_t largest[] = {8, 2000, payload + 2000};
        const Operation choice[] = {Operation::allReduce, Operation::broadcast, Operation::allGather,
                                    Operation::reduceScatter};
        Call call{
            choice[common() % 4], DataType::u8, ReduceOp::max, nullptr, nullptr, 1 + common() % largest[common() % 3]};
        if (call.operation == Operation::reduceScatter) call.count = 1 + call.count / 8;
        call.peer = static_cast<Rank>(common() % static_cast<unsigned>(ranks()));
        RankBuffers buffers(call, rank, ranks(), common() % 2 == 0);
        if (own() % 16 == 0) std::this_thread::sleep_for(std::chrono::microseconds(own() % 500));
        // The lines of a World belong to one thread: what goes over connections is for other tests.
        if (!planDirect(*world[rank].direct, world[rank].shape, buffers.call())) continue;
        ++ran[rank];
        const auto done = runAlone(world[rank], buffers.call(), {*waiter});
        if (!done) wrong[rank] = "did not run alone";
        if (done && !*done) wrong[rank] = done->error().message();
        if (const auto right = buffers.check(); !right) wrong[rank] = right.message();
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (const std::string& each : wrong) EXPECT_EQ(each, "");
  for (const int each : ran) EXPECT_GT(each, 20);
}

TEST(DirectPlan, WithoutReadingMemoryOnlyWhatFitsIntoASlot) {
  constexpr int ranks = 6;
  const DirectMembers members = directMembers(ranks, Access::none);
  const std::size_t payload = members[0]->inlineBytes();
  std::vector<std::byte> data(8 * payload);
  for (const Operation operation : operations) {
    Call call{operation, DataType::u8, ReduceOp::sum, data.data(), data.data(), payload, hasRoot(operation) ? 0 : -1};
    // What the rank posts that posts most: of these all blocks.
    const bool allBlocks =
        operation == Operation::reduceScatter || operation == Operation::scatter || operation == Operation::allToAll;
    if (allBlocks) call.count = payload / ranks;
    for (Rank rank = 0; rank < ranks; ++rank) {
      const MemberShape shape{.rank = rank, .size = ranks};
      EXPECT_EQ(planDirect(*members[rank], shape, call).has_value(), true) << nameOf(operation);
      Call larger = call;
      ++larger.count;
      EXPECT_EQ(planDirect(*members[rank], shape, larger).has_value(), false) << nameOf(operation);
    }
  }
}

/// Runs the root ahead with messages of `bytes`.
void expectRootIsAheadBy(std::uint64_t most, std::size_t bytes) {
  DirectMembers members = directMembers(2, Access::none);
  const auto broadcast = [&](Rank rank, std::vector<std::byte>& data) {
    const Call call{Operation::broadcast, DataType::u8, ReduceOp::sum, data.data(), data.data(), bytes, 0};
    return *planDirect(*members[rank], {.rank = rank, .size = 2}, call);
  };
  const auto valueOf = [&](std::uint64_t i) { return std::vector(bytes, static_cast<std::byte>(i)); };
  for (std::uint64_t i = 1; i <= most; ++i) {
    auto value = valueOf(i);
    EXPECT_EQ(*broadcast(0, value).progress(), DirectRunner::State::finished);
  }
  auto value = valueOf(most + 1);
  DirectRunner next = broadcast(0, value);
  EXPECT_EQ(*next.progress(), DirectRunner::State::stuck);
  EXPECT_EQ(next.awaited().rank, 1);
  for (std::uint64_t i = 1; i <= most + 1; ++i) {
    std::vector<std::byte> got(bytes);
    EXPECT_EQ(*broadcast(1, got).progress(), DirectRunner::State::finished);
    EXPECT_EQ(got, valueOf(i));
    // Of many places half must be free before it goes on.
    const std::uint64_t free = most > NodeBoard::roomCount ? most / 2 + 1 : 1;
    if (i == free) {
      EXPECT_EQ(*next.progress(), DirectRunner::State::finished);
    } else if (i < most / 2) {
      EXPECT_EQ(*next.progress(), DirectRunner::State::stuck);
    }
  }
}

TEST(DirectPlan, AFastRootIsAheadByTheLinesOrSlotsAndNoFurther) {
  expectRootIsAheadBy(NodeBoard::lineCountFor(2), 1);
  expectRootIsAheadBy(NodeBoard::lineCountFor(2), NodeBoard::lineBytes);
  expectRootIsAheadBy(NodeBoard::slotCountFor(2), NodeBoard::lineBytes + 1);
  expectRootIsAheadBy(NodeBoard::slotCountFor(2), NodeBoard::slotBytes);
}

TEST(DirectPlan, WithLongMessagesItIsAheadByTheRooms) {
  expectRootIsAheadBy(NodeBoard::roomCount, NodeBoard::slotBytes + 1);
  expectRootIsAheadBy(NodeBoard::roomCount, NodeBoard::payloadBytesFor(2));
}

TEST(DirectRunner, ServesTheNextCallLikeItsLast) {
  constexpr int size = 2;
  constexpr std::size_t posted = 4, fromMemory = 16 << 10;
  const std::size_t inParts = NodeBoard::payloadBytesFor(size) / 2;
  for (const std::size_t count : {posted, fromMemory, inParts}) {
    DirectMembers members = directMembers(size, Access::memory, count != inParts);
    std::vector<std::optional<DirectRunner>> runners(size);
    for (int round = 0; round < 5; ++round) {
      std::vector<std::vector<std::int32_t>> send(size), receive(size, std::vector<std::int32_t>(count));
      for (Rank rank = 0; rank < size; ++rank) {
        send[rank].assign(count, round * 10 + rank);
        const Call call{
            Operation::allReduce, DataType::i32, ReduceOp::sum, send[rank].data(), receive[rank].data(), count, -1};
        if (round == 0)
          runners[rank] = planDirect(*members[rank], {.rank = rank, .size = size}, call);
        else
          runners[rank]->again(call);
      }
      std::vector<bool> finished(size);
      while (!finished[0] || !finished[1])
        for (Rank rank = 0; rank < size; ++rank) {
          if (finished[rank]) continue;
          const auto state = runners[rank]->progress();
          ASSERT_TRUE(state) << state.error().message();
          finished[rank] = *state == DirectRunner::State::finished;
        }
      for (Rank rank = 0; rank < size; ++rank)
        EXPECT_EQ(receive[rank], std::vector<std::int32_t>(count, 20 * round + 1)) << round;
    }
  }
}

// Who sleeps is rung by the one it said it waits for: so it must not sleep when that is another one by now.
TEST(DirectRunner, IsNotStuckWhenItWaitsForAnotherRankThanBefore) {
  constexpr int size = 4;
  DirectMembers members = directMembers(size, Access::none);
  std::vector<std::vector<float>> data(size, std::vector<float>(64, 1));
  std::vector<DirectRunner> runners;
  for (Rank rank = 0; rank < size; ++rank) {
    const Call call{Operation::allReduce, DataType::f32, ReduceOp::sum, data[rank].data(), data[rank].data(), 64, -1};
    runners.push_back(*planDirect(*members[rank], {.rank = rank, .size = size}, call));
  }
  ASSERT_TRUE(runners[0].progress());
  ASSERT_EQ(*runners[0].progress(), DirectRunner::State::stuck);
  int told = 0;
  for (int others = 1; others < size; ++others) {
    const Rank awaited = runners[0].awaited().rank;
    ASSERT_TRUE(runners[awaited].progress());
    const auto state = runners[0].progress();
    ASSERT_TRUE(state);
    if (*state == DirectRunner::State::finished) break;
    EXPECT_NE(runners[0].awaited().rank, awaited);
    EXPECT_EQ(*state, DirectRunner::State::advanced);
    EXPECT_EQ(*runners[0].progress(), DirectRunner::State::stuck);
    ++told;
  }
  EXPECT_GT(told, 0);
}

}  // namespace
}  // namespace falcon::collectives
