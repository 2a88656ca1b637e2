#include "injections/recovery.h"

#include <gtest/gtest.h>

#include "injections/sweep.h"

namespace falcon::injections {
namespace {

demo::JobShape shapeOf(int replicas, int microBatches) {
  demo::JobShape shape;
  shape.dataParallel = replicas;
  shape.microBatches = microBatches;
  return shape;
}

TEST(Bound, OfALinkIsAllWhereTheRingHasAnotherOrder) {
  for (const CellKind kind : {CellKind::link, CellKind::linkBothWays}) {
    EXPECT_EQ(boundOf({kind, 2}, shapeOf(4, 32)), 1.0);
    EXPECT_FALSE(boundOf({kind, 2}, shapeOf(2, 32)));
  }
}

// With 8 interfaces 1.04, 1.14 and 1.71 times healthy at 1/1.5, half and a third: OptCC, arXiv 2606.01680.
TEST(Bound, OfAnInterfaceIsThatOfThePaper) {
  for (const auto& [factor, times] : {std::pair{1.5, 1.04}, {2.0, 1.14}, {3.0, 1.71}}) {
    const auto bound = boundOf({CellKind::interface, factor}, shapeOf(8, 32));
    ASSERT_TRUE(bound);
    EXPECT_NEAR(factor - *bound * (factor - 1), times, 0.005);
  }
}

TEST(Bound, OfARankIsWhatWholeMicroBatchesAllow) {
  // 7 of 8 at 1.2, which are 8.4, and 9, 8 and 8 for the others: 9 instead of 9.6, of 8 when all are healthy.
  EXPECT_NEAR(*boundOf({CellKind::rank, 1.2}, shapeOf(4, 32)), 0.6 / 1.6, 1e-12);
  // 4 at 2.0, and 28 for three: 10 instead of 16.
  EXPECT_NEAR(*boundOf({CellKind::rank, 2}, shapeOf(4, 32)), 6.0 / 8, 1e-12);
  // One each: nothing can be taken from it.
  EXPECT_NEAR(*boundOf({CellKind::rank, 2}, shapeOf(4, 4)), 0, 1e-12);
}

TEST(Bound, IsNotKnownOfWhatAJobCannotHelp) {
  EXPECT_FALSE(boundOf({CellKind::contention, 1}, shapeOf(4, 32)));
  EXPECT_FALSE(boundOf({CellKind::none, 1}, shapeOf(4, 32)));
}

/// Iterations of these lengths, from second 0 to 10 and so on: healthy, slow, with the remedy.
Episode episodeOf(double healthy, double slow, double relieved) {
  Episode episode;
  episode.started = episode.effective = 10;
  episode.relieved = 30;
  for (double end = 0; end < 10; end += healthy) episode.iterationEnds.push_back(end);
  for (double end = 10; end < 20; end += slow) episode.iterationEnds.push_back(end);
  for (double end = 20; end < 30; end += relieved) episode.iterationEnds.push_back(end);
  episode.said = {{"verdict", 19}, {"mitigation-applied", 20}};
  return episode;
}

TEST(Recovery, IsTheShareOfTheSlowdownThatTheRemedyGivesBack) {
  EXPECT_NEAR(*recoveredIn(episodeOf(0.2, 0.4, 0.25), 10), 0.75, 1e-9);
  EXPECT_NEAR(*recoveredIn(episodeOf(0.2, 0.4, 0.5), 10), -0.5, 1e-9) << "it made things worse, and that is told";
}

TEST(Recovery, IsNoneWithoutRemedyAndUnknownWhereNothingWasSlow) {
  Episode episode = episodeOf(0.2, 0.4, 0.4);
  episode.said.pop_back();
  EXPECT_EQ(recoveredIn(episode, 10), 0.0);
  EXPECT_FALSE(recoveredIn(episodeOf(0.2, 0.203, 0.2), 10));
  episode.iterationEnds.clear();
  EXPECT_FALSE(recoveredIn(episode, 10));
}

// A first remedy that is not enough counts as slow no longer.
TEST(Recovery, IsOfTheLastRemedy) {
  Episode episode = episodeOf(0.2, 0.4, 0.25);
  episode.said.push_back({"mitigation-applied", 25});
  EXPECT_NEAR(*recoveredIn(episode, 10), 0.75, 1e-9);
  episode.said.push_back({"mitigation-undone", 31});
  episode.said.push_back({"mitigation-applied", 32});
  EXPECT_NEAR(*recoveredIn(episode, 10), 0.75, 1e-9) << "after the injection";
}

TEST(Sweep, SaysWhatRemediesDidNotGiveBack) {
  CellResult link{.cell = {CellKind::link, 2}, .count = 5, .named = 5, .recovered = 0.95, .bound = 1};
  CellResult rank{.cell = {CellKind::rank, 2}, .count = 5, .named = 5, .recovered = 0.7, .bound = 0.75};
  EXPECT_TRUE(shortcomingsOf({link, rank}).empty());
  link.recovered = 0.85;
  EXPECT_EQ(shortcomingsOf({link, rank}).size(), 1U);
  rank.recovered = 0.3;
  EXPECT_EQ(shortcomingsOf({link, rank}).size(), 3U) << "both, and the mean";
}

}  // namespace
}  // namespace falcon::injections
