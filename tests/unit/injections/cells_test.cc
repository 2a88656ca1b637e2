#include "injections/cells.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <stdexcept>

#include "injections/sweep.h"

namespace falcon::injections {
namespace {

const demo::JobShape shape;

TEST(Cells, AreFoundByKindAndFactor) {
  EXPECT_EQ(cellsNamed({"all"}), allCells());
  EXPECT_EQ(cellsNamed({"link:1.5"}), (std::vector<Cell>{{CellKind::link, 1.5}}));
  EXPECT_EQ(cellsNamed({"rank"}).size(), 5u);
  EXPECT_EQ(cellsNamed({"none", "none", "link:5"}).size(), 2u);
  for (const char* wrong : {"links", "link:7", "none:2", ""}) {
    try {
      cellsNamed({"rank", wrong});
      ADD_FAILURE() << wrong;
    } catch (const std::invalid_argument& error) {
      EXPECT_THAT(error.what(), testing::HasSubstr("--cells " + std::string(wrong) + ": there is no such cell"));
      EXPECT_THAT(error.what(), testing::HasSubstr("link-both-ways:1.5"));
    }
  }
}

TEST(Cells, NeedNoMoreThanAJobForEveryShare) {
  int jobs = 0;
  double share = 0;
  for (const Cell& cell : allCells()) jobs += std::exchange(share, exchangeShare(cell)) != exchangeShare(cell);
  EXPECT_EQ(jobs, 2);
}

TEST(Cells, SlowOnlyWhatTheJobUsesAndNeedNoMoreThanThatNamed) {
  for (const Cell& cell : allCells()) {
    std::set<std::vector<Culprit>> different;
    for (int number = 0; number < 8; ++number) {
      const Victims victims = victimsOf(cell, number, shape, "here");
      different.insert(victims.slow);
      EXPECT_EQ(victims.slow.empty(), cell.kind == CellKind::none);
      for (const Culprit& each : victims.needed)
        EXPECT_NE(std::find(victims.slow.begin(), victims.slow.end(), each), victims.slow.end());
      for (const Culprit& each : victims.slow) {
        if (each.kind != CulpritKind::link) continue;
        EXPECT_NE(each.link.from, each.link.to);
        EXPECT_EQ(each.link.from % shape.pipelineParallel, each.link.to % shape.pipelineParallel);
      }
    }
    if (cell.isOfLinks() || cell.kind == CellKind::rank) {
      EXPECT_GE(different.size(), 4u) << nameOf(cell.kind);
    }
  }
  const Victims interface = victimsOf({CellKind::interface, 2}, 0, shape, "here");
  EXPECT_EQ(interface.slow.size(), 3u) << "a rank has a link to each of three others";
  EXPECT_EQ(interface.needed.size(), 2u) << "the gradients' ring goes over two of them";
}

TEST(Sweep, SaysWhatIsNotGoodOfTheCellsThatWereRun) {
  EXPECT_TRUE(shortcomingsOf({}).empty());
  CellResult strong{.cell = {CellKind::link, 2}, .count = 20, .named = 19, .heldSeconds = 2.0};
  CellResult weak{.cell = {CellKind::interface, 1.3}, .count = 5, .named = 4};
  const CellResult told{.cell = {CellKind::link, 1.2}, .count = 5, .named = 0};
  EXPECT_TRUE(shortcomingsOf({strong, weak, told}).empty());
  strong.named = 18;
  weak.named = 3;
  weak.innocent = 1;
  weak.heldSeconds = 3.5;
  EXPECT_THAT(shortcomingsOf({strong, weak, told}),
              testing::ElementsAre(testing::HasSubstr("held for 3.5 s"), testing::HasSubstr("18 of 20 named"),
                                   testing::HasSubstr("3 of 5 named"), testing::HasSubstr("1 innocent")));
}

}  // namespace
}  // namespace falcon::injections
