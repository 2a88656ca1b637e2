#include "injections/scoring.h"

#include <gtest/gtest.h>

namespace falcon::injections {
namespace {

using demo::Said;

const Culprit rankThree{.kind = CulpritKind::rank, .rank = 3};
const Culprit rankFour{.kind = CulpritKind::rank, .rank = 4};
const Culprit oneWay{.kind = CulpritKind::link, .link = {0, 2}};
const Culprit back{.kind = CulpritKind::link, .link = {2, 0}};
const Culprit bothWays{.kind = CulpritKind::link, .link = {0, 2}, .bothWays = true};

/// Effective at 100 s, one iteration a second, onset at 103.5, trap of 2 s, verdicts at 108, relief at 130.
Episode episodeOf(std::vector<Culprit> truth, const std::vector<Culprit>& named) {
  Episode episode{.truth = std::move(truth), .started = 99, .effective = 100, .relieved = 120};
  for (int second = 90; second < 140; ++second) episode.iterationEnds.push_back(second + 0.2);
  episode.said = {{"onset", 103.5, {}, 0, ""}, {"trap-closed", 106, {}, 0, ""}, {"trap-opened", 108, {}, 2, ""}};
  for (const Culprit& each : named) episode.said.push_back({"verdict", 108, each, 0, ""});
  for (const Culprit& each : named) episode.said.push_back({"relief", 130, each, 0, ""});
  if (named.empty()) episode.said.push_back({"relief", 130, {}, 0, ""});
  return episode;
}

TEST(Scoring, RightWithTheTruthAlone) {
  const Row row = scoreOf(episodeOf({rankThree}, {rankThree}));
  EXPECT_TRUE(row.right);
  EXPECT_EQ(row.innocent, 0);
  EXPECT_EQ(row.delayIterations, 4);
  EXPECT_NEAR(*row.delaySeconds, 3.5, 1e-9);
  EXPECT_NEAR(*row.validationSeconds, 4.5, 1e-9);
  EXPECT_NEAR(*row.trapSeconds, 2, 1e-9);
}

TEST(Scoring, InnocentIsWhoWasNamedAndNotInjected) {
  const Row other = scoreOf(episodeOf({rankThree}, {rankFour}));
  EXPECT_FALSE(other.right);
  EXPECT_EQ(other.innocent, 1);
  EXPECT_FALSE(other.validationSeconds);
  const Row beside = scoreOf(episodeOf({rankThree}, {rankThree, oneWay}));
  EXPECT_FALSE(beside.right);
  EXPECT_EQ(beside.innocent, 1);
  EXPECT_TRUE(beside.validationSeconds);
  const Row nobody = scoreOf(episodeOf({rankThree}, {}));
  EXPECT_FALSE(nobody.right);
  EXPECT_EQ(nobody.innocent, 0);
}

TEST(Scoring, DirectionsOfLinksCount) {
  EXPECT_TRUE(scoreOf(episodeOf({bothWays}, {bothWays})).right);
  EXPECT_TRUE(scoreOf(episodeOf({bothWays}, {oneWay, back})).right);
  EXPECT_FALSE(scoreOf(episodeOf({bothWays}, {oneWay})).right);
  EXPECT_EQ(scoreOf(episodeOf({bothWays}, {oneWay})).innocent, 0);
  EXPECT_EQ(scoreOf(episodeOf({oneWay}, {bothWays})).innocent, 1);
  EXPECT_EQ(scoreOf(episodeOf({oneWay}, {back})).innocent, 1);
}

TEST(Scoring, OfTwoBothMustBeNamed) {
  EXPECT_FALSE(scoreOf(episodeOf({rankThree, oneWay}, {rankThree})).right);
  EXPECT_TRUE(scoreOf(episodeOf({rankThree, oneWay}, {oneWay, rankThree})).right);
}

TEST(Scoring, WithNothingInjectedNobodyMayBeNamed) {
  Episode episode;
  EXPECT_TRUE(scoreOf(episode).right);
  episode.said = {{"onset", 5, {}, 0, ""}, {"inconclusive", 8, {}, 0, ""}, {"relief", 20, {}, 0, ""}};
  EXPECT_TRUE(scoreOf(episode).right);
  EXPECT_FALSE(scoreOf(episode).validationSeconds);
  episode.said.push_back({"verdict", 21, rankThree, 0, ""});
  EXPECT_FALSE(scoreOf(episode).right);
  EXPECT_EQ(scoreOf(episode).innocent, 1);
}

TEST(Scoring, AnOnsetOfBeforeIsNotThisOne) {
  Episode episode = episodeOf({rankThree}, {rankThree});
  episode.said.insert(episode.said.begin(), {"onset", 95, {}, 0, ""});
  EXPECT_NEAR(*scoreOf(episode).delaySeconds, 3.5, 1e-9);
  // A job that was slow already gets worse.
  episode.said[1].kind = "worsening";
  EXPECT_NEAR(*scoreOf(episode).delaySeconds, 3.5, 1e-9);
  EXPECT_NEAR(*scoreOf(episode).validationSeconds, 4.5, 1e-9);
  // The one of before was still being looked into.
  episode.said.erase(episode.said.begin() + 1);
  EXPECT_FALSE(scoreOf(episode).delaySeconds);
  EXPECT_NEAR(*scoreOf(episode).validationSeconds, 8, 1e-9);
}

TEST(Scoring, WithoutReliefItIsNotRight) {
  Episode episode = episodeOf({rankThree}, {rankThree});
  episode.said.pop_back();
  EXPECT_FALSE(scoreOf(episode).right);
  episode.said.push_back({"relief", 115, rankThree, 0, ""});  // before it was relieved
  EXPECT_FALSE(scoreOf(episode).reliefSeen);
}

TEST(Scoring, SummaryCountsAndDecides) {
  const Row right = scoreOf(episodeOf({rankThree}, {rankThree}));
  Row slow = right;
  slow.validationSeconds = 15.1;
  std::vector<Row> rows(19, right);
  rows.push_back(slow);
  rows.push_back(scoreOf(Episode{}));
  const Summary summary = summaryOf(rows);
  EXPECT_EQ(summary.count, 21);
  EXPECT_EQ(summary.right, 21);
  EXPECT_EQ(summary.within15s, 19);
  EXPECT_TRUE(summary.passed());  // 19 of 20
  rows.push_back(slow);
  EXPECT_FALSE(summaryOf(rows).passed());
  rows.assign(20, right);
  rows[3].right = false;
  EXPECT_FALSE(summaryOf(rows).passed());
}

}  // namespace
}  // namespace falcon::injections
