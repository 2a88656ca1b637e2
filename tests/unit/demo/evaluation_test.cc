#include "demo/evaluation.h"

#include <gtest/gtest.h>

namespace falcon::demo {
namespace {

const Culprit rankThree{.kind = CulpritKind::rank, .rank = 3};
const Culprit link{.kind = CulpritKind::link, .link = {0, 2}};
const Culprit linkBoth{.kind = CulpritKind::link, .link = {0, 2}, .bothWays = true};

/// 100 s of iterations: 0.5 s, and `slow` seconds from 40 to 60.
demo::Run runWith(double slow, const Culprit& truth, std::vector<Said> said) {
  demo::Run run;
  for (double t = 0; t < 100;) {
    const double length = t >= 40 && t < 60 ? slow : 0.5;
    run.iterations.push_back({t, t + length, 1});
    t += length;
  }
  run.truths = {{truth, 40, 60, true, ""}};
  run.said = std::move(said);
  return run;
}

std::vector<Said> storyOf(const Culprit& named) {
  return {{"period-known", 5, {}, 0, ""}, {"onset", 43.2, {}, 0, ""},
          {"trap-closed", 45, {}, 0, ""}, {"trap-opened", 46, {}, 1, ""},
          {"verdict", 46, named, 0, ""},  {"mitigation-applied", 47, named, 0, "did it"},
          {"relief", 62, named, 0, ""},   {"mitigation-undone", 62.5, named, 0, ""}};
}

TEST(Evaluation, RightWhenTheOneCulpritIsNamed) {
  const demo::Run without = runWith(1.0, rankThree, {});
  const Evaluation evaluation = evaluate(runWith(0.6, rankThree, storyOf(rankThree)), without);
  ASSERT_EQ(evaluation.rows.size(), 1u);
  const Row& row = evaluation.rows[0];
  EXPECT_TRUE(row.right);
  EXPECT_TRUE(evaluation.right);
  EXPECT_EQ(row.iterationsToDetection, 5);
  EXPECT_EQ(row.trapSeconds, 1);
  EXPECT_NEAR(row.healthy, 500, 1);
  EXPECT_NEAR(row.slow, 1000, 1);
  EXPECT_NEAR(*row.mitigated, 600, 1);
  EXPECT_NEAR(*row.recovered, 0.8, 0.01);
  EXPECT_TRUE(row.reliefSeen);
  EXPECT_TRUE(row.undone);
  EXPECT_GT(evaluation.throughputWith, evaluation.throughputWithout);
}

TEST(Evaluation, WrongWhenAnotherIsNamedOrNobodyOrTwo) {
  const demo::Run without = runWith(1.0, rankThree, {});
  EXPECT_FALSE(evaluate(runWith(1, rankThree, storyOf({.kind = CulpritKind::rank, .rank = 4})), without).right);
  EXPECT_FALSE(evaluate(runWith(1, rankThree, storyOf(link)), without).right);
  EXPECT_FALSE(evaluate(runWith(1, rankThree, {}), without).right);
  auto two = storyOf(rankThree);
  two.push_back({"verdict", 50, link, 0, ""});
  EXPECT_FALSE(evaluate(runWith(1, rankThree, two), without).right);
}

TEST(Evaluation, DirectionsOfALinkCount) {
  const demo::Run without = runWith(1.0, link, {});
  const Culprit reverse{.kind = CulpritKind::link, .link = {2, 0}};
  const Culprit reverseBoth{.kind = CulpritKind::link, .link = {2, 0}, .bothWays = true};
  EXPECT_TRUE(evaluate(runWith(1, link, storyOf(link)), without).right);
  EXPECT_FALSE(evaluate(runWith(1, link, storyOf(reverse)), without).right);
  EXPECT_FALSE(evaluate(runWith(1, link, storyOf(linkBoth)), without).right);
  EXPECT_FALSE(evaluate(runWith(1, linkBoth, storyOf(link)), without).right);
  EXPECT_TRUE(evaluate(runWith(1, linkBoth, storyOf(reverseBoth)), without).right);
}

TEST(Evaluation, AFalseAlarmOrAnInjectionWithoutEffectIsNotRight) {
  auto said = storyOf(rankThree);
  said.push_back({"onset", 20, {}, 0, "for nothing"});
  const demo::Run without = runWith(1.0, rankThree, {});
  const Evaluation alarmed = evaluate(runWith(1, rankThree, said), without);
  EXPECT_FALSE(alarmed.right);
  EXPECT_EQ(alarmed.falseAlarms.size(), 1u);
  demo::Run powerless = runWith(1, rankThree, storyOf(rankThree));
  powerless.truths[0].effective = false;
  EXPECT_FALSE(evaluate(powerless, without).right);
}

TEST(Evaluation, AHealthyRunMustBeSilent) {
  demo::Run run = runWith(0.5, rankThree, {{"period-known", 5, {}, 0, ""}, {"baseline-taken", 9, {}, 0, ""}});
  run.truths.clear();
  EXPECT_TRUE(evaluate(run, {}).right);
  run.said.push_back({"onset", 50, {}, 0, ""});
  EXPECT_FALSE(evaluate(run, {}).right);
  EXPECT_FALSE(evaluate({}, {}).right);  // a job that did nothing proves nothing
}

TEST(Evaluation, ReadsWhatTheLibraryWrites) {
  const auto said = parseEvents(
      "{\"v\":1,\"kind\":\"verdict\",\"time_s\":5.5,\"culprit\":{\"kind\":\"link\",\"from\":2,\"to\":4,\"both_ways\":"
      "true},\"text\":\"x\"}\nnot json\n");
  ASSERT_EQ(said.size(), 1u);
  EXPECT_EQ(said[0].culprit.link, (Link{2, 4}));
  EXPECT_TRUE(said[0].culprit.bothWays);
}

}  // namespace
}  // namespace falcon::demo
