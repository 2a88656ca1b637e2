#include "demo/restart_evaluation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace falcon::demo {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// 60 healthy iterations of 100 ms, 40 slow ones of 300 ms, 5 s of nothing, 40 healthy ones.
RestartRun asItShouldBe() {
  RestartRun run;
  double time = 50;
  const auto train = [&](int count, double seconds) {
    for (int i = 0; i < count; ++i, time += seconds) {
      const std::uint64_t number = run.iterations.size();
      run.iterations.push_back({number, time, time + seconds, 3.0 / (1.0 + static_cast<double>(number))});
    }
  };
  train(60, 0.1);
  run.slowSince = time;
  train(40, 0.3);
  run.said = {{.kind = "verdict", .time = time - 6, .culprit = {CulpritKind::rank, 2, {}, false}},
              {.kind = "mitigation-applied",
               .time = time - 0.4,
               .text = "restarts; slowness has cost 7.9 s, as much as the price of 7.5 s",
               .action = "restart"}};
  time += 5;
  train(40, 0.1);
  run.undisturbed = run.iterations;
  run.slow = 2;
  run.slowPlace = "/place/2";
  run.placeAfterwards = "/place/4";
  run.exitCode = 0;
  return run;
}

TEST(RestartEvaluation, OfWhatItShouldBeMissesNothing) {
  const auto result = evaluate(asItShouldBe());
  EXPECT_THAT(result.missing, ElementsAre());
  EXPECT_NEAR(result.healthy, 100, 1e-6);
  EXPECT_NEAR(result.slow, 300, 1e-6);
  EXPECT_NEAR(result.afterwards, 100, 1e-6);
  EXPECT_NEAR(result.lostSeconds, 8, 1e-6);
  EXPECT_NEAR(result.stoodSeconds, 5, 1e-6);
  EXPECT_EQ(result.priceSeconds, 7.5);
  EXPECT_EQ(result.firstAfterwards, 100u);
}

template <class Change>
void expectMissing(Change change, const char* what) {
  RestartRun run = asItShouldBe();
  change(run);
  EXPECT_THAT(evaluate(run).missing, testing::Contains(HasSubstr(what)));
}

TEST(RestartEvaluation, MissesWhatWasNotSeen) {
  expectMissing([](RestartRun& run) { run.said[0].culprit.rank = 1; }, "rank 2 was not named");
  expectMissing([](RestartRun& run) { run.said.pop_back(); }, "no restart was decided");
  expectMissing([](RestartRun& run) { run.said[1].text = "restarts; price of 20.5 s"; },
                "lost 8.0 s, at a price of 20.5");
  expectMissing([](RestartRun& run) { run.said[1].text = "restarts"; }, "no price");
  expectMissing([](RestartRun& run) { run.placeAfterwards = run.slowPlace; }, "place was not left");
  expectMissing([](RestartRun& run) { run.exitCode = 143; }, "ended with code 143");
  expectMissing([](RestartRun& run) { run.undisturbed[120].loss *= 1.01; }, "a loss differs");
  expectMissing([](RestartRun& run) { run.undisturbed.resize(90); }, "only 90 of 140");
  expectMissing([](RestartRun& run) { run.iterations.resize(104); }, "did not go on");
  expectMissing(
      [](RestartRun& run) {
        for (std::size_t i = 100; i < run.iterations.size(); ++i) run.iterations[i].end += 0.04;
      },
      "after the restart, and took 100 ms in health");
  expectMissing(
      [](RestartRun& run) {
        for (std::size_t i = 100; i < run.iterations.size(); ++i) run.iterations[i].number -= 25;
      },
      "not the newest checkpoint");
}

TEST(RestartEvaluation, OnAMachineThatBecameBusierComparesWithTheUndisturbedRun) {
  RestartRun run = asItShouldBe();
  for (std::size_t i = 100; i < run.iterations.size(); ++i) run.iterations[i].end += 0.04;
  for (NumberedIteration& each : run.undisturbed) each.end += 0.04;
  EXPECT_THAT(evaluate(run).missing, ElementsAre());
}

TEST(NumberedLog, IsReadLineByLine) {
  const auto log =
      parseNumberedLog("{\"iteration\":7,\"loss\":2.5,\"start\":1,\"end\":1.5,\"microBatches\":4}\n{\"iter");
  ASSERT_EQ(log.size(), 1u);
  EXPECT_EQ(log[0].number, 7u);
  EXPECT_EQ(log[0].loss, 2.5);
  EXPECT_EQ(log[0].end, 1.5);
}

}  // namespace
}  // namespace falcon::demo
