#include "demo/evaluation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace falcon::demo {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

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
  return {{"period-known", 5, {}, 0, ""},
          {"baseline-taken", 6, {}, 0, ""},
          {"onset", 43.2, {}, 0, ""},
          {"trap-closed", 45, {}, 0, ""},
          {"trap-opened", 46, {}, 1, ""},
          {"verdict", 46, named, 0, ""},
          {"mitigation-applied", 47, named, 0, "did it"},
          {"relief", 62, named, 0, ""},
          {"mitigation-undone", 62.5, named, 0, ""}};
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
  EXPECT_THAT(row.missing, ElementsAre());
  EXPECT_THAT(conclusion(evaluation), testing::Not(HasSubstr("NOT RIGHT")));
  EXPECT_GT(evaluation.throughputWith, evaluation.throughputWithout);
}

// The demo runs on machines that are used for other things as well.
TEST(Evaluation, WhatIsSaidOfOtherProgramsIsRightWhereTheyWereThere) {
  const Culprit host{.kind = CulpritKind::host, .host = "here"};
  std::vector<Said> said = storyOf(rankThree);
  said.insert(said.begin(), {{"baseline-taken", 6, {}, 0, ""},
                             {"onset", 22, {}, 0, ""},
                             {"verdict", 23, host, 0, "others"},
                             {"relief", 39, host, 0, ""}});
  const demo::Run without = runWith(1.0, rankThree, {});
  demo::Run run = runWith(0.6, rankThree, said);
  for (double t = 0; t < 100; t += 1) run.others.add({t, t + 1, t >= 20 && t < 30 ? 0.8 : 0.3});
  const Evaluation evaluation = evaluate(run, without);
  EXPECT_TRUE(evaluation.right) << conclusion(evaluation);
  EXPECT_THAT(evaluation.ofOthers, ElementsAre("onset: ", "verdict: others"));
  EXPECT_TRUE(evaluation.rows[0].right);

  run.others = {};
  for (double t = 0; t < 100; t += 1) run.others.add({t, t + 1, 0.3});
  const Evaluation quiet = evaluate(run, without);
  EXPECT_FALSE(quiet.right);
  EXPECT_THAT(quiet.falseAlarms, ElementsAre("onset: ", "verdict: others"));

  // However busy the machine is, no rank is slow for it.
  run = runWith(0.6, rankThree, storyOf(rankThree));
  run.said.push_back({"verdict", 25, link, 0, "a link"});
  run.others.add({20, 30, 2});
  EXPECT_FALSE(evaluate(run, without).right);
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

/// The story of rank 3 with one kind of event taken out, or put elsewhere.
std::vector<Said> storyWithout(const std::string& kind) {
  auto said = storyOf(rankThree);
  std::erase_if(said, [&](const Said& each) { return each.kind == kind; });
  return said;
}
std::vector<Said> storyWith(const std::string& kind, double time) {
  auto said = storyWithout(kind);
  const Said moved{kind, time, rankThree, 0, ""};
  said.insert(std::find_if(said.begin(), said.end(), [&](const Said& each) { return each.time > time; }), moved);
  return said;
}

struct Case {
  std::string name;
  std::vector<Said> said;
  std::string missing;
};
class Missing : public testing::TestWithParam<Case> {};

TEST_P(Missing, IsNotRightAndIsSaid) {
  const Evaluation evaluation = evaluate(runWith(0.6, rankThree, GetParam().said), runWith(1.0, rankThree, {}));
  EXPECT_FALSE(evaluation.right);
  ASSERT_EQ(evaluation.rows.size(), 1u);
  const std::string whole = "rank 3: " + GetParam().missing;
  EXPECT_THAT(evaluation.rows[0].missing, ElementsAre(GetParam().missing));
  EXPECT_THAT(evaluation.missing, ElementsAre(whole));
  EXPECT_EQ(conclusion(evaluation), "NOT RIGHT: " + whole);
  EXPECT_THAT(toText(evaluation), HasSubstr("rank 3: MISSING: " + GetParam().missing));
  EXPECT_EQ(toJson(evaluation)["missing"][0], whole);
  EXPECT_EQ(toJson(evaluation)["injections"][0]["missing"][0], GetParam().missing);
  EXPECT_EQ(toJson(evaluation)["right"], false);
}
// Slow from 40 to 60, named at 46, relieved at 62, undone at 62.5.
INSTANTIATE_TEST_SUITE_P(
    Pieces, Missing,
    testing::Values(
        Case{"Remedy", storyWithout("mitigation-applied"), "no remedy was applied while it was slow"},
        Case{"RemedyAfterTheInjection", storyWith("mitigation-applied", 61), "no remedy was applied while it was slow"},
        Case{"RemedyBeforeTheVerdict", storyWith("mitigation-applied", 45.5),
             "no remedy was applied while it was slow"},
        Case{"Relief", storyWithout("relief"), "relief was not seen"},
        Case{"ReliefWhileSlow", storyWith("relief", 55), "relief was said while it was slow"},
        Case{"ReliefTooLate", storyWith("relief", 81), "relief was not seen"},
        Case{"Undoing", storyWithout("mitigation-undone"), "the remedy was not undone after the relief"},
        Case{"UndoingBeforeTheRelief", storyWith("mitigation-undone", 61),
             "the remedy was not undone after the relief"},
        Case{"UndoingTooLate", storyWith("mitigation-undone", 81), "the remedy was not undone after the relief"}),
    [](const auto& each) { return each.param.name; });

TEST(Evaluation, ARemedyAgainstAnotherIsNone) {
  auto said = storyOf(rankThree);
  for (Said& each : said)
    if (each.kind.starts_with("mitigation")) each.culprit = link;
  EXPECT_THAT(evaluate(runWith(0.6, rankThree, said), {}).missing,
              ElementsAre("rank 3: no remedy was applied while it was slow"));
}

TEST(Evaluation, ARemedyThatIsAppliedAgainAfterItsUndoingIsNotUndone) {
  auto said = storyOf(rankThree);
  said.push_back({"mitigation-applied", 64, rankThree, 0, ""});
  EXPECT_THAT(evaluate(runWith(0.6, rankThree, said), {}).missing,
              ElementsAre("rank 3: the remedy was not undone after the relief"));
}

TEST(Evaluation, SaysAllThatIsMissing) {
  EXPECT_THAT(evaluate(runWith(1, rankThree, {{"baseline-taken", 6, {}, 0, ""}}), {}).missing,
              ElementsAre("rank 3: there was no verdict", "rank 3: no remedy was applied while it was slow",
                          "rank 3: relief was not seen"));
  auto two = storyOf(rankThree);
  two.push_back({"verdict", 50, link, 0, ""});
  EXPECT_THAT(evaluate(runWith(0.6, rankThree, two), {}).missing,
              ElementsAre("rank 3: not it alone was named: rank 3 and link 0 -> 2"));
  EXPECT_THAT(evaluate(runWith(0.6, rankThree, storyOf(link)), {}).missing,
              testing::Contains("rank 3: the verdict was link 0 -> 2"));
  two = storyOf(rankThree);
  two.push_back({"onset", 90, {}, 0, "for nothing"});
  EXPECT_THAT(evaluate(runWith(0.6, rankThree, two), {}).missing, ElementsAre("false alarm, onset: for nothing"));
}

TEST(Evaluation, SlowIsScaledByHowFastTheTwoRunsAreInHealth) {
  demo::Run without = runWith(1.0, rankThree, {});
  for (Iteration& each : without.iterations) each.start *= 2, each.end *= 2;  // a machine half as fast
  without.truths[0].started *= 2, without.truths[0].ended *= 2;
  const Row row = evaluate(runWith(0.6, rankThree, storyOf(rankThree)), without).rows[0];
  EXPECT_NEAR(row.slow, 1000, 1);
  EXPECT_NEAR(*row.recovered, 0.8, 0.01);
  // A twin that had no effect says nothing of how slow the job would have been.
  without.truths[0].effective = false;
  const Row alone = evaluate(runWith(0.6, rankThree, storyOf(rankThree)), without).rows[0];
  EXPECT_EQ(alone.slow, 0);
  EXPECT_FALSE(alone.recovered);
  EXPECT_NEAR(*alone.mitigated, 600, 1);
}

TEST(Evaluation, WhatIsLeftOfTheInjectionBeforeIsNotHealthy) {
  // Rank 3 is slow from 40 to 60 and worked around until 68; the link is slow from 72 on.
  auto said = storyWith("mitigation-undone", 68);
  for (const Said& each : storyOf(link)) said.push_back({each.kind, each.time + 32, each.culprit, each.duration, ""});
  demo::Run run = runWith(0.6, rankThree, said);
  for (Iteration& each : run.iterations)
    if (each.start >= 60 && each.end <= 68) each.end = each.start + 0.4;  // not as before, either
  demo::Run without = runWith(1.0, rankThree, {});
  for (demo::Run* each : {&run, &without}) each->truths.push_back({link, 72, 92, true, ""});
  const Evaluation evaluation = evaluate(run, without);
  EXPECT_TRUE(evaluation.right) << conclusion(evaluation);
  EXPECT_NEAR(evaluation.rows[1].healthy, 500, 1);
}

TEST(Evaluation, AnInjectionThatNeverBeganSpoilsOnlyItsOwnRow) {
  demo::Run run = runWith(0.6, rankThree, storyOf(rankThree));
  run.truths.push_back({link, 0, 0, false, "was never started"});
  const Evaluation evaluation = evaluate(run, {});
  EXPECT_THAT(evaluation.rows[0].missing, ElementsAre());
  EXPECT_THAT(evaluation.rows[1].missing, testing::Contains("the injection had no effect"));
  EXPECT_FALSE(evaluation.right);
}

TEST(Evaluation, TheTableSaysHowItIsComputed) {
  const Evaluation evaluation = evaluate(runWith(0.6, rankThree, storyOf(rankThree)), runWith(1, rankThree, {}));
  for (const std::string& line : legend()) EXPECT_THAT(toText(evaluation), HasSubstr(line));
  EXPECT_EQ(toJson(evaluation)["legend"], legend());
  for (const char* word : {"healthy: ", "slow: ", "mitigated: ", "recovered: "})
    EXPECT_THAT(legend(), testing::Contains(testing::StartsWith(word)));
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
  demo::Run deaf = run;
  deaf.said.pop_back();
  EXPECT_FALSE(evaluate(deaf, {}).right) << "it knew of nothing to compare with";
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
