// Every collective with every algorithm against the oracle: all ranks in one thread, in an order drawn from a seed.
#include <bit>
#include <numeric>

#include "collectives/algorithm_choice.h"
#include "collectives/call_plan.h"
#include "fabric.h"
#include "harness/rank_buffers.h"
#include "harness/thoroughness.h"

namespace falcon::collectives {
namespace {

using test::Fabric;
using test::RankBuffers;

constexpr std::size_t chunkBytes = 256;
std::vector<int> rankCounts() {
  return test::isSampled() ? std::vector{1, 2, 3, 5} : std::vector{1, 2, 3, 4, 5, 7, 8};
}

std::vector<Rank> shuffledRing(int ranks, unsigned seed) {
  std::vector<Rank> ring(ranks);
  std::iota(ring.begin(), ring.end(), 0);
  std::shuffle(ring.begin(), ring.end(), std::mt19937(seed));
  return ring;
}

/// Drives all runners in random order until all have finished.
testing::AssertionResult driveSteps(std::vector<StepRunner> runners, unsigned seed) {
  std::mt19937 random(seed);
  int idle = 0;
  while (!runners.empty()) {
    const size_t pick = random() % runners.size();
    const auto state = runners[pick].progress();
    if (!state) return testing::AssertionFailure() << state.error().message();
    if (*state == StepRunner::State::finished) {
      std::swap(runners[pick], runners.back());
      runners.pop_back();
    }
    idle = *state == StepRunner::State::stuck ? idle + 1 : 0;
    if (idle > 100000) return testing::AssertionFailure() << runners.size() << " tasks are stuck for ever";
  }
  return testing::AssertionSuccess();
}

struct Trial {
  Call call;
  const Algorithm* algorithm;  ///< null: the planner's choice
  int channels;
  bool inPlace;
};

void runTrial(const Trial& trial, int ranks, unsigned seed) {
  Fabric fabric(ranks, chunkBytes, seed);
  const auto ring = shuffledRing(ranks, seed);
  std::vector<RankBuffers> buffers;
  for (Rank rank = 0; rank < ranks; ++rank) buffers.emplace_back(trial.call, rank, ranks, trial.inPlace);
  std::vector<StepRunner> runners;
  for (Rank rank = 0; rank < ranks; ++rank) {
    const MemberShape shape{rank, ranks, 1, trial.channels, chunkBytes};
    const Call call = buffers[rank].call();
    const auto plans = trial.algorithm ? planCollective(shape, call, *trial.algorithm, trial.channels, ring)
                                       : planCollective(shape, call, ring);
    for (const TaskPlan& plan : plans) runners.emplace_back(fabric.portsOf(rank), plan.rounds, plan.operands);
  }
  ASSERT_TRUE(driveSteps(std::move(runners), seed));
  for (const RankBuffers& rank : buffers) ASSERT_TRUE(rank.check());
  ASSERT_EQ(fabric.leftOver(), 0u);
}

/// Around nothing, the ranks, the grain, the chunk, a ring's round, and the same times the channels.
std::vector<std::size_t> interestingCounts(int ranks, DataType type, int channels) {
  const std::size_t chunk = chunkBytes / sizeOf(type);
  const std::size_t grain = 64 / sizeOf(type);
  const std::size_t round = chunk * ranks;
  std::vector<std::size_t> counts = {0, 1, 2};
  for (const std::size_t edge :
       {static_cast<std::size_t>(ranks), grain, chunk, round, chunk * channels, round * channels})
    for (const std::size_t count : {edge - 1, edge, edge + 1}) counts.push_back(count);
  counts.push_back(2 * round * channels + chunk / 2 + 1);
  counts.push_back(3 * round + 17);
  std::sort(counts.begin(), counts.end());
  counts.erase(std::unique(counts.begin(), counts.end()), counts.end());
  return counts;
}

struct Candidate {
  Operation operation;
  const Algorithm* algorithm;
};

class Collective : public testing::TestWithParam<std::tuple<int, Candidate>> {
 protected:
  int ranks() const { return std::get<0>(GetParam()); }
  Call call(DataType type, ReduceOp op, std::size_t count, unsigned seed) const {
    const Operation operation = std::get<1>(GetParam()).operation;
    const bool rooted = operation == Operation::broadcast || operation == Operation::reduce ||
                        operation == Operation::gather || operation == Operation::scatter;
    return {operation, type, op, nullptr, nullptr, count, rooted ? static_cast<Rank>(seed % ranks()) : -1};
  }
  bool reduces() const {
    const Operation operation = std::get<1>(GetParam()).operation;
    return operation == Operation::allReduce || operation == Operation::reduce || operation == Operation::reduceScatter;
  }
  void run(DataType type, ReduceOp op, std::size_t count, int channels, bool inPlace, unsigned seed) {
    if (inPlace && !test::canBeInPlace(std::get<1>(GetParam()).operation)) return;
    runTrial({call(type, op, count, seed), std::get<1>(GetParam()).algorithm, channels, inPlace}, ranks(), seed);
  }
};

TEST_P(Collective, IsRightForCountsAroundEveryBorder) {
  unsigned seed = 1;
  for (const int channels : {1, 2, 3})
    for (const auto& [type, op] : {std::pair(DataType::f32, ReduceOp::sum), std::pair(DataType::i8, ReduceOp::max),
                                   std::pair(DataType::f64, ReduceOp::avg)})
      for (const std::size_t count : interestingCounts(ranks(), type, channels))
        for (const bool inPlace : {false, true}) {
          run(type, op, count, channels, inPlace, seed++);
          if (HasFatalFailure()) return;
        }
}

TEST_P(Collective, IsRightForEveryTypeAndReduction) {
  unsigned seed = 1000;
  for (int type = 0; type < dataTypeCount; ++type) {
    const auto dataType = static_cast<DataType>(type);
    const int ops = isInteger(dataType) ? reduceKindCount : reduceOpCount + 1;
    for (int op = 0; op < (reduces() ? ops : 1); ++op)
      for (const std::size_t count : {std::size_t{3}, chunkBytes / sizeOf(dataType) * ranks() + 5}) {
        run(dataType, static_cast<ReduceOp>(op), count, 2, seed % 2 == 0, seed);
        ++seed;
        if (HasFatalFailure()) return;
      }
  }
}

std::string candidateName(const testing::TestParamInfo<std::tuple<int, Candidate>>& info) {
  const auto& [ranks, candidate] = info.param;
  return std::string(candidate.algorithm ? candidate.algorithm->name : "flat") + nameOf(candidate.operation) + "On" +
         std::to_string(ranks);
}

constexpr Candidate candidates[] = {
    {Operation::allReduce, &ringAllReduce},
    {Operation::allReduce, &treeAllReduce},
    {Operation::allGather, &ringAllGather},
    {Operation::reduceScatter, &ringReduceScatter},
    {Operation::broadcast, &ringBroadcast},
    {Operation::reduce, &ringReduce},
    {Operation::allReduce, &starAllReduce},
    {Operation::allReduce, &doublingAllReduce},
    {Operation::allReduce, &exchangeAllReduce},
    {Operation::allGather, &starAllGather},
    {Operation::allGather, &doublingAllGather},
    {Operation::allGather, &exchangeAllGather},
    {Operation::reduceScatter, &exchangeReduceScatter},
    {Operation::reduce, &starReduce},
    {Operation::reduceScatter, &starReduceScatter},
    {Operation::allToAll, &starAllToAll},
    {Operation::scatter, &binomialScatter},
    {Operation::allToAll, nullptr},
    {Operation::gather, nullptr},
    {Operation::scatter, nullptr},
};

INSTANTIATE_TEST_SUITE_P(All, Collective,
                         testing::Combine(testing::ValuesIn(rankCounts()), testing::ValuesIn(candidates)),
                         candidateName);

constexpr const Algorithm* allReduces[] = {&ringAllReduce, &treeAllReduce, &starAllReduce, &doublingAllReduce,
                                           &exchangeAllReduce};

/// All ranks' results.
std::vector<std::vector<float>> allReduced(const Algorithm& algorithm, ReduceOp op,
                                           const std::vector<std::vector<float>>& input) {
  const int ranks = static_cast<int>(input.size());
  auto output = input;
  Fabric fabric(ranks, chunkBytes, 3);
  const auto ring = shuffledRing(ranks, 3);
  std::vector<StepRunner> runners;
  for (Rank rank = 0; rank < ranks; ++rank) {
    const Call call{Operation::allReduce, DataType::f32, op, input[rank].data(), output[rank].data(), input[0].size()};
    for (const TaskPlan& plan : planCollective({rank, ranks, 1, 2, chunkBytes}, call, algorithm, 2, ring))
      runners.emplace_back(fabric.portsOf(rank), plan.rounds, plan.operands);
  }
  EXPECT_TRUE(driveSteps(std::move(runners), 5));
  return output;
}

void expectTheSameBits(ReduceOp op, const std::vector<std::vector<float>>& input) {
  for (const Algorithm* algorithm : allReduces) {
    const auto output = allReduced(*algorithm, op, input);
    for (size_t rank = 1; rank < output.size(); ++rank)
      EXPECT_EQ(std::memcmp(output[rank].data(), output[0].data(), output[0].size() * sizeof(float)), 0)
          << algorithm->name << " on rank " << rank << " of " << output.size();
  }
}

// Floats whose sums depend on the order: whatever the order is, all ranks must have the same bits.
TEST(AllReduce, GivesTheSameBitsOnAllRanks) {
  for (const int ranks : {2, 3, 4, 5, 7, 8}) {
    std::mt19937 random(7);
    std::vector<std::vector<float>> input(ranks, std::vector<float>(1234));
    for (auto& values : input)
      for (float& value : values)
        value = std::ldexp(std::uniform_real_distribution<float>(-1, 1)(random), random() % 40);
    expectTheSameBits(ReduceOp::sum, input);
  }
}

// What is the larger of 0 and -0, or the sum of two different NaNs, depends on which comes first.
TEST(AllReduce, GivesTheSameBitsWhereTheReductionIsNotSymmetric) {
  for (const int ranks : {2, 3, 4, 5, 7, 8}) {
    std::mt19937 random(11);
    std::vector<std::vector<float>> zeros(ranks, std::vector<float>(700)), nans = zeros;
    for (int rank = 0; rank < ranks; ++rank)
      for (size_t i = 0; i < zeros[rank].size(); ++i) {
        zeros[rank][i] = random() % 2 ? 0.0F : -0.0F;
        nans[rank][i] = std::bit_cast<float>(0x7fc00000U + static_cast<unsigned>(rank) + 1);
      }
    expectTheSameBits(ReduceOp::max, zeros);
    expectTheSameBits(ReduceOp::min, zeros);
    expectTheSameBits(ReduceOp::sum, nans);
  }
}

TEST(RingAllReduce, SendsNoMoreThanItsShareOverEachLink) {
  for (const int ranks : {2, 3, 8}) {
    Fabric fabric(ranks, chunkBytes, 1);
    const auto ring = shuffledRing(ranks, 9);
    const std::size_t count = 64 * 16 * ranks;
    std::vector<std::vector<float>> data(ranks, std::vector<float>(count));
    std::vector<StepRunner> runners;
    for (Rank rank = 0; rank < ranks; ++rank) {
      const Call call{Operation::allReduce, DataType::f32, ReduceOp::sum, data[rank].data(), data[rank].data(), count};
      for (const TaskPlan& plan : planCollective({rank, ranks, 1, 1, chunkBytes}, call, ringAllReduce, 1, ring))
        runners.emplace_back(fabric.portsOf(rank), plan.rounds, plan.operands);
    }
    ASSERT_TRUE(driveSteps(std::move(runners), 5));
    for (int i = 0; i < ranks; ++i)
      EXPECT_EQ(fabric.bytes(ring[i], ring[(i + 1) % ranks]), 2 * (ranks - 1) * count * sizeof(float) / ranks);
  }
}

// 64-bit counts: the steps of one round stay few and their offsets right, however much there is.
TEST(RoundSource, NeverHoldsMoreStepsThanARoundNeeds) {
  const std::size_t count = (std::size_t{1} << 36) + 12345;
  const std::vector<Rank> ring = {2, 0, 3, 1};
  for (const Algorithm* algorithm : {&ringAllReduce, &treeAllReduce, &starAllReduce, &doublingAllReduce,
                                     &exchangeAllReduce, &ringBroadcast, &ringReduce, &sendMessage}) {
    Geometry geometry{0, 4, ring, 1, count, std::size_t{1} << 30, 16, 0};
    RoundSource rounds(*algorithm, geometry, {0, count});
    Program program;
    std::size_t most = 0, furthest = 0;
    while (rounds.next(program)) {
      most = std::max(most, program.steps.size());
      for (const Step& step : program.steps) {
        ASSERT_LE(step.count, geometry.chunk);
        furthest = std::max(furthest, std::max(step.sourceOffset, step.destinationOffset) + step.count);
      }
    }
    EXPECT_LE(most * sizeof(Step), 64u << 10) << algorithm->name;
    EXPECT_EQ(furthest, count) << algorithm->name;
  }
}

// A short last round too.
TEST(RoundSource, StepsStayWithinTheScratchThatIsMade) {
  for (const int size : {2, 3, 5, 8}) {
    std::vector<Rank> ring(size);
    std::iota(ring.begin(), ring.end(), 0);
    for (const Algorithm* algorithm : {&starReduceScatter, &starAllToAll, &binomialScatter}) {
      std::size_t furthest = 0;
      for (Rank rank = 0; rank < size; ++rank) {
        constexpr std::size_t count = 100;
        RoundSource rounds(*algorithm, {rank, size, ring, 1, count, 64, 16, 0}, {0, count});
        const std::size_t made = rounds.scratch();
        Program program;
        const auto reach = [&](Where where, std::size_t offset, std::size_t elements) {
          if (where != Where::scratch) return;
          EXPECT_LE(offset + elements, made) << algorithm->name << ", rank " << rank << " of " << size;
          furthest = std::max(furthest, offset + elements);
        };
        while (rounds.next(program))
          for (const Step& step : program.steps) {
            reach(step.source, step.sourceOffset, step.count);
            reach(step.destination, step.destinationOffset, step.count);
          }
      }
      EXPECT_TRUE(size <= 3 || furthest > 0) << algorithm->name;
    }
  }
}

TEST(StepRunner, RefusesAChunkOfTheWrongSize) {
  Fabric fabric(2, chunkBytes, 1, 0);
  float data[4] = {};
  const Call send{Operation::send, DataType::f32, ReduceOp::sum, data, nullptr, 3, 1};
  const Call receive{Operation::receive, DataType::f32, ReduceOp::sum, nullptr, data, 4, 0};
  const auto runnerOf = [&](Rank rank, const Call& call) {
    const TaskPlan plan = planMessage({rank, 2, 1, 1, chunkBytes}, call);
    return StepRunner(fabric.portsOf(rank), plan.rounds, plan.operands);
  };
  StepRunner sender = runnerOf(0, send), receiver = runnerOf(1, receive);
  ASSERT_EQ(*sender.progress(), StepRunner::State::advanced);
  ASSERT_EQ(*sender.progress(), StepRunner::State::finished);
  const auto received = receiver.progress();
  ASSERT_FALSE(received);
  EXPECT_EQ(received.error().code(), ErrorCode::invalidUsage);
  EXPECT_NE(received.error().message().find("12 bytes where 16"), std::string::npos) << received.error().message();
}

TEST(StepRunner, IsStuckWithASourceToWaitForAndFinishesOnlyWhenFlushed) {
  Fabric fabric(2, chunkBytes, 1, 0.9);
  std::vector<float> data(1000);
  const Call send{Operation::send, DataType::f32, ReduceOp::sum, data.data(), nullptr, data.size(), 1};
  const TaskPlan plan = planMessage({0, 2, 1, 1, chunkBytes}, send);
  StepRunner sender(fabric.portsOf(0), plan.rounds, plan.operands);
  // Nobody receives: eight chunks go out, then there is no more credit.
  for (int i = 0; i < 1000; ++i) ASSERT_NE(*sender.progress(), StepRunner::State::finished);
  ASSERT_EQ(*sender.progress(), StepRunner::State::stuck);
  std::vector<transport::WaitSource> sources;
  sender.appendWaitSources(sources);
  EXPECT_EQ(sources.size(), 1u);
  EXPECT_EQ(fabric.leftOver(), 8u);
}

}  // namespace
}  // namespace falcon::collectives
