// The demo trainer as real processes over our library: every split gives one rank's loss curve, and nothing hangs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <thread>

#include "train_job.h"

namespace falcon::train_test {
namespace {

using namespace std::chrono_literals;
using testing::Each;
using testing::HasSubstr;

constexpr int iterations = 15;
constexpr int microBatches = 10;
const std::vector<std::string> smallModel = {
    "--layers",           "4",  "--hidden", "32", "--heads",         "4",
    "--sequence",         "16", "--vocab",  "32", "--micro-batches", std::to_string(microBatches),
    "--micro-batch-size", "2"};

std::vector<std::string> with(std::vector<std::string> arguments, const std::vector<std::string>& more) {
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

std::vector<std::string> layoutFlags(int data, int pipeline, int tensor) {
  return {"--dp", std::to_string(data), "--pp", std::to_string(pipeline), "--tp", std::to_string(tensor)};
}

struct Layout {
  int data, pipeline, tensor;
  bool falcon = false;
  int ranks() const { return data * pipeline * tensor; }
};

/// Trains and returns every rank's log; fails the test if a rank fails.
std::vector<std::vector<LoggedIteration>> train(const Layout& layout) {
  const ScratchFolder folder;
  const auto limit = std::vector<std::string>{"--iterations", std::to_string(iterations)};
  const auto flags = with(with(smallModel, layoutFlags(layout.data, layout.pipeline, layout.tensor)), limit);
  TrainJob job(layout.ranks(), with(flags, {"--log", folder.file("log.%r")}),
               {{"NCCL_FALCON", layout.falcon ? "1" : "0"}});
  EXPECT_THAT(job.wait(), Each(0)) << job.errors(0);
  std::vector<std::vector<LoggedIteration>> logs;
  for (int rank = 0; rank < layout.ranks(); ++rank) logs.push_back(readLog(folder.file("log." + std::to_string(rank))));
  return logs;
}

const std::vector<LoggedIteration>& oneRank() {
  static const auto log = train({1, 1, 1})[0];
  return log;
}

TEST(OneRank, LearnsAndLogsEveryIteration) {
  const auto& log = oneRank();
  ASSERT_EQ(log.size(), static_cast<std::size_t>(iterations));
  double before = 0;
  for (int i = 0; i < iterations; ++i) {
    EXPECT_EQ(log[i].iteration, static_cast<std::uint64_t>(i));
    EXPECT_EQ(log[i].microBatches, microBatches);
    EXPECT_GE(log[i].start, before);
    EXPECT_GT(log[i].end, log[i].start);
    before = log[i].end;
  }
  EXPECT_NEAR(log.front().loss, std::log(32), 0.3);
  EXPECT_LT(log.back().loss, log.front().loss - 0.3);
}

class Splits : public testing::TestWithParam<Layout> {};

TEST_P(Splits, GiveTheLossCurveOfOneRank) {
  const Layout layout = GetParam();
  const auto logs = train(layout);
  std::vector<int> computed(iterations);
  for (int rank = 0; rank < layout.ranks(); ++rank) {
    ASSERT_EQ(logs[rank].size(), oneRank().size()) << "rank " << rank;
    for (int i = 0; i < iterations; ++i) {
      EXPECT_NEAR(logs[rank][i].loss, oneRank()[i].loss, 1e-5) << "rank " << rank << ", iteration " << i;
      if (rank % (layout.pipeline * layout.tensor) == 0) computed[i] += logs[rank][i].microBatches;
    }
  }
  EXPECT_THAT(computed, Each(microBatches));
}

INSTANTIATE_TEST_SUITE_P(Layouts, Splits,
                         testing::Values(Layout{2, 1, 1}, Layout{4, 1, 1}, Layout{1, 2, 1}, Layout{1, 4, 1},
                                         Layout{1, 1, 2}, Layout{1, 1, 4}, Layout{2, 2, 1}, Layout{4, 2, 1},
                                         Layout{2, 2, 2}, Layout{4, 2, 1, true}),
                         [](const auto& one) {
                           const Layout& layout = one.param;
                           return "dp" + std::to_string(layout.data) + "pp" + std::to_string(layout.pipeline) + "tp" +
                                  std::to_string(layout.tensor) + (layout.falcon ? "falcon" : "");
                         });

void expectTheSameEnd(const ScratchFolder& folder) {
  const auto first = readLog(folder.file("log.0"));
  ASSERT_GE(first.size(), 1u);
  EXPECT_GE(first.back().end - first.front().start, 1.0);
  for (int rank = 1; rank < 4; ++rank) {
    const auto log = readLog(folder.file("log." + std::to_string(rank)));
    ASSERT_EQ(log.size(), first.size()) << "rank " << rank;
    EXPECT_EQ(log.back().iteration, first.back().iteration);
  }
}

TEST(Duration, EndsAllRanksAfterTheSameIteration) {
  const ScratchFolder folder;
  TrainJob job(4, with(smallModel, {"--dp", "2", "--pp", "2", "--duration", "1", "--log", folder.file("log.%r")}));
  ASSERT_THAT(job.wait(), Each(0)) << job.errors(0);
  expectTheSameEnd(folder);
}

TEST(Until, EndsAllRanksAfterTheSameIteration) {
  const ScratchFolder folder;
  TrainJob job(4, with(smallModel,
                       {"--dp", "2", "--pp", "2", "--until", folder.file("enough"), "--log", folder.file("log.%r")}));
  const auto seconds = [&] {
    const auto log = readLog(folder.file("log.0"), Growth::grows);
    return log.empty() ? 0 : log.back().end - log.front().start;
  };
  for (int i = 0; i < 12'000 && seconds() < 1; ++i) std::this_thread::sleep_for(10ms);
  std::ofstream(folder.file("enough")).close();
  ASSERT_THAT(job.wait(), Each(0)) << job.errors(0);
  expectTheSameEnd(folder);
}

TEST(Death, OfARankEndsTheOthersWithAnError) {
  const ScratchFolder folder;
  TrainJob job(4, with(smallModel, {"--dp", "2", "--pp", "2", "--iterations", "1000000", "--log", folder.file("log")}));
  // It trains when the log has a line.
  for (int i = 0; i < 12'000 && readLog(folder.file("log"), Growth::grows).empty(); ++i)
    std::this_thread::sleep_for(10ms);
  job.kill(3);
  const auto codes = job.wait(60s);
  EXPECT_THAT(codes, testing::ElementsAre(1, 1, 1, 128 + SIGKILL));
  for (int rank = 0; rank < 3; ++rank) EXPECT_THAT(job.errors(rank), HasSubstr("falcon-train: rank")) << rank;
}

struct BadFlags {
  const char* name;
  int ranks;
  std::vector<std::string> flags;
  const char* message;
  Variables variables;
};

class Refused : public testing::TestWithParam<BadFlags> {};

TEST_P(Refused, WithExitCodeTwoAndTheReason) {
  TrainJob job(GetParam().ranks, GetParam().flags, GetParam().variables);
  EXPECT_THAT(job.wait(), Each(2));
  EXPECT_THAT(job.errors(0), HasSubstr(GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(
    Flags, Refused,
    testing::Values(BadFlags{"product", 2, {"--dp", "3"}, "makes 3 ranks, but WORLD_SIZE is 2", {}},
                    BadFlags{"heads", 0, {"--hidden", "30", "--heads", "4"}, "--hidden 30 is not a multiple", {}},
                    BadFlags{"tensor", 3, {"--tp", "3", "--heads", "4"}, "--heads 4 is not a multiple of --tp 3", {}},
                    BadFlags{"layers", 2, {"--pp", "2", "--layers", "1"}, "--layers 1 is less than --pp 2", {}},
                    BadFlags{"batches", 2, {"--dp", "2", "--micro-batches", "1"}, "--micro-batches 1 is less", {}},
                    BadFlags{"zero", 0, {"--layers", "0"}, "--layers", {}},
                    BadFlags{"text", 0, {"--hidden", "many"}, "--hidden", {}},
                    BadFlags{"unknown", 0, {"--no-such-flag"}, "no-such-flag", {}},
                    BadFlags{"rank", 0, {}, "RANK=x", {{"RANK", "x"}}},
                    BadFlags{"size", 0, {}, "WORLD_SIZE", {{"RANK", "0"}}}),
    [](const auto& one) { return one.param.name; });

TEST(Help, IsNoError) {
  TrainJob job(0, {"--help"});
  EXPECT_THAT(job.wait(), Each(0));
}

}  // namespace
}  // namespace falcon::train_test
