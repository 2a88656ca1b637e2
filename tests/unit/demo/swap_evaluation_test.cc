#include "demo/swap_evaluation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace falcon::demo {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// 60 healthy iterations of 100 ms, 40 slow ones of 300 ms, 40 after the exchange, 30 while the link is healthy and
/// nobody knows it, 40 after the undoing.
SwapRun swapAsItShouldBe() {
  SwapRun run;
  double time = 50;
  const auto train = [&](int count, double seconds) {
    for (int i = 0; i < count; ++i, time += seconds) {
      const std::uint64_t number = run.iterations.size();
      run.iterations.push_back({number, time, time + seconds, 3.0 / (1.0 + static_cast<double>(number))});
    }
  };
  run.slow = {.kind = CulpritKind::link, .link = {1, 3}, .bothWays = true};
  train(60, 0.1);
  run.slowSince = time;
  train(40, 0.3);
  const double swapped = time;
  train(40, 0.1);
  run.slowUntil = time;
  train(30, 0.1);
  const double undone = time;
  train(40, 0.1);
  const Culprit link{.kind = CulpritKind::link, .link = {3, 1}, .bothWays = true};
  run.said = {{.kind = "verdict", .time = swapped - 1, .culprit = link},
              {.kind = "mitigation-applied", .time = swapped, .text = "ranks 0 and 1 ...", .action = "swap"},
              {.kind = "relief", .time = undone - 0.5, .culprit = link},
              {.kind = "mitigation-undone", .time = undone, .action = "swap"}};
  run.undisturbed = run.iterations;
  run.exitCode = 0;
  return run;
}

TEST(SwapEvaluation, OfWhatItShouldBeMissesNothing) {
  const auto result = evaluate(swapAsItShouldBe());
  EXPECT_THAT(result.missing, ElementsAre());
  EXPECT_NEAR(result.healthy, 100, 1e-6);
  EXPECT_NEAR(result.slow, 300, 1e-6);
  EXPECT_NEAR(result.swapped, 100, 1e-6);
  EXPECT_NEAR(result.afterwards, 100, 1e-6);
  EXPECT_NEAR(result.namedAfter.value_or(0), 11, 1e-6);
  EXPECT_NEAR(result.swappedAfter.value_or(0), 12, 1e-6);
  EXPECT_NEAR(result.undoneAfter.value_or(0), 3, 1e-6);
  EXPECT_TRUE(toJson(result).at("right").get<bool>());
}

template <class Change>
void expectSwapMissing(Change change, const char* what) {
  SwapRun run = swapAsItShouldBe();
  change(run);
  const auto result = evaluate(run);
  EXPECT_THAT(result.missing, testing::Contains(HasSubstr(what)));
  EXPECT_FALSE(result.right());
}

TEST(SwapEvaluation, MissesWhatWasNotSeen) {
  expectSwapMissing([](SwapRun& run) { run.said[0].culprit.link = {0, 2}; }, "was not named");
  expectSwapMissing([](SwapRun& run) { run.said[1].action = "reroute"; }, "no ranks exchanged their roles");
  expectSwapMissing([](SwapRun& run) { run.said.erase(run.said.begin() + 2); }, "healthy again");
  expectSwapMissing([](SwapRun& run) { run.said.pop_back(); }, "not undone");
  expectSwapMissing([](SwapRun& run) { run.said[3].time = run.slowUntil - 1; }, "not undone");
  expectSwapMissing([](SwapRun& run) { run.exitCode = 1; }, "code 1");
  expectSwapMissing([](SwapRun& run) { run.undisturbed[100].loss *= 1.1; }, "a loss differs");
  expectSwapMissing([](SwapRun& run) { run.undisturbed.resize(50); }, "only 50 of 210");
  expectSwapMissing([](SwapRun& run) { run = {}; }, "never slow");
}

TEST(SwapEvaluation, MissesAnEffectThatIsNotThere) {
  const auto stretch = [](SwapRun& run, std::size_t from, std::size_t to, double seconds) {
    for (std::size_t i = from; i < to; ++i) run.iterations[i].start = run.iterations[i].end - seconds;
  };
  expectSwapMissing([&](SwapRun& run) { stretch(run, 60, 100, 0.11); }, "did not slow the job");
  expectSwapMissing([&](SwapRun& run) { stretch(run, 101, 140, 0.2); }, "after the exchange");
  expectSwapMissing([&](SwapRun& run) { stretch(run, 171, 210, 0.2); }, "in the end");
}

}  // namespace
}  // namespace falcon::demo
