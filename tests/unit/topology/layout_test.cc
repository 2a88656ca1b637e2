#include <gtest/gtest.h>

#include "topology/layout.h"
#include "unit/topology/shuffled_ring.h"

namespace falcon::topology {
namespace {

TEST(Layout, NumbersTensorShardsFirstThenStagesThenReplicas) {
  const Layout layout{2, 3, 4};
  EXPECT_EQ(layout.size(), 24);
  EXPECT_EQ(layout.rankAt({1, 2, 3}), 23);
  EXPECT_EQ(layout.coordinatesOf(17), (Coordinates{1, 1, 1}));
  EXPECT_EQ(layout.dataGroup(5), (std::vector<Rank>{5, 17}));
  EXPECT_EQ(layout.pipelineGroup(5), (std::vector<Rank>{1, 5, 9}));
  EXPECT_EQ(layout.tensorGroup(5), (std::vector<Rank>{4, 5, 6, 7}));
  EXPECT_EQ(layout.replica(1).front(), 12);
  EXPECT_EQ(layout.replica(1).back(), 23);
}

TEST(Layout, GivesEveryRankOnePlaceAndItsGroupsContainIt) {
  for (int d = 1; d <= 4; ++d)
    for (int p = 1; p <= 4; ++p)
      for (int t = 1; t <= 4; ++t) {
        const Layout layout{d, p, t};
        for (Rank rank = 0; rank < layout.size(); ++rank) {
          EXPECT_EQ(layout.rankAt(layout.coordinatesOf(rank)), rank);
          for (const auto& [group, size] :
               {std::pair(layout.dataGroup(rank), d), std::pair(layout.pipelineGroup(rank), p),
                std::pair(layout.tensorGroup(rank), t),
                std::pair(layout.replica(layout.coordinatesOf(rank).data), p * t)}) {
            EXPECT_EQ(group.size(), static_cast<size_t>(size));
            EXPECT_EQ(std::count(group.begin(), group.end(), rank), 1);
          }
        }
      }
}

}  // namespace
}  // namespace falcon::topology
