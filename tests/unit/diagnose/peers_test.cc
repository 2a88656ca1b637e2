#include "instrument/peer_comparison.h"

#include <gtest/gtest.h>

#include "diagnose/suspicion.h"
#include "unit/instrument/simulated_training.h"

namespace falcon::diagnose {
namespace {

using namespace instrument;

Suspicion comparePeers(std::span<const RankNow> ranks, std::span<const CommunicatorShape> shapes) {
  SeenInProfile seen{.ranks = besidePeers(ranks, shapes)};
  for (const CommunicatorShape& shape : shapes) seen.communicators.push_back({shape.communicator, shape.members});
  return suspect(seen, {.leastOfGroup = 1.1});
}

using topology::Layout;

class PeersInLayouts : public testing::TestWithParam<Layout> {
 protected:
  SimulatedTraining job() const { return {.layout = GetParam(), .microBatches = 2 * GetParam().pipelineSize}; }
  Suspicion judge(const SimulatedTraining& now) const { return comparePeers(profilesOf(now.run(3, 1)), now.shapes()); }
  Rank someRank(int part) const { return (GetParam().size() - 1) * part / 3; }
  bool stageHasPeers() const { return GetParam().dataSize * GetParam().tensorSize >= 3; }
};

TEST_P(PeersInLayouts, RolesAreInferred) {
  const auto shapes = job().shapes();
  const auto roles = inferRoles(shapes);
  const Layout& layout = GetParam();
  for (const CommunicatorShape& shape : shapes) {
    const auto first = layout.coordinatesOf(shape.members[0]), second = layout.coordinatesOf(shape.members[1]);
    const CommunicatorRole wanted = first.data != second.data           ? CommunicatorRole::data
                                    : first.pipeline != second.pipeline ? CommunicatorRole::pipeline
                                                                        : CommunicatorRole::tensor;
    EXPECT_STREQ(nameOf(roles.at(shape.communicator)), nameOf(wanted)) << shape.members.size() << " members";
  }
  for (const auto& equal : ranksOfEqualWork(shapes, roles))
    for (const Rank rank : equal)
      EXPECT_EQ(layout.coordinatesOf(rank).pipeline, layout.coordinatesOf(equal.front()).pipeline);
}

TEST_P(PeersInLayouts, AHealthyJobAndUnequalStagesHaveNoCulprit) {
  SimulatedTraining now = job();
  EXPECT_TRUE(judge(now).empty()) << judge(now).reason;
  now.stages[0] = 1.6;
  EXPECT_TRUE(judge(now).empty()) << judge(now).reason;
}

TEST_P(PeersInLayouts, ARankThatIsSlowFromTheStartIsFound) {
  for (int part = 0; part < 4; ++part) {
    SimulatedTraining now = job();
    now.stages[0] = 1.3;
    now.slowRanks[someRank(part)] = 1.8;
    const Suspicion suspicion = judge(now);
    if (!stageHasPeers()) {
      EXPECT_TRUE(suspicion.ranks.empty()) << suspicion.reason;
      continue;
    }
    ASSERT_EQ(suspicion.ranks.size(), 1U) << suspicion.reason;
    EXPECT_EQ(suspicion.ranks[0].rank, someRank(part));
    EXPECT_TRUE(suspicion.groups.empty()) << suspicion.reason;
  }
}

/// Three data groups or more, of more than one member.
class PeersInDataGroups : public PeersInLayouts {};

TEST_P(PeersInDataGroups, AGroupWithASlowLinkIsFoundAmongThreeLikeIt) {
  const auto group = GetParam().dataGroup(0);
  SimulatedTraining now = job();
  now.slowLinks[{group[0], group[1]}] = 6;
  const Suspicion suspicion = judge(now);
  ASSERT_EQ(suspicion.groups.size(), 1U) << suspicion.reason;
  EXPECT_TRUE(suspicion.ranks.empty()) << suspicion.reason;
  for (const auto& each : now.communicators()) {
    if (each.communicator != suspicion.groups[0].communicator) continue;
    EXPECT_EQ(each.members, group);
  }
}

std::vector<Layout> layoutsWhere(bool (*holds)(const Layout&)) {
  std::vector<Layout> layouts{{2, 1, 1}, {8, 1, 1}, {4, 1, 2}, {1, 4, 1}, {2, 4, 1}, {2, 2, 2}, {4, 4, 4}, {3, 2, 4}};
  std::erase_if(layouts, [&](const Layout& layout) { return !holds(layout); });
  return layouts;
}
std::string layoutName(const testing::TestParamInfo<Layout>& layouts) {
  const Layout& layout = layouts.param;
  return "D" + std::to_string(layout.dataSize) + "P" + std::to_string(layout.pipelineSize) + "T" +
         std::to_string(layout.tensorSize);
}
INSTANTIATE_TEST_SUITE_P(Layouts, PeersInLayouts, testing::ValuesIn(layoutsWhere([](const Layout&) { return true; })),
                         layoutName);
INSTANTIATE_TEST_SUITE_P(Layouts, PeersInDataGroups, testing::ValuesIn(layoutsWhere([](const Layout& layout) {
                           return layout.dataSize >= 2 && layout.pipelineSize * layout.tensorSize >= 3;
                         })),
                         layoutName);

TEST(Peers, WaitMuchLongerThanTheirTransferForARankThatComputesALittleLonger) {
  for (const bool shortTransfer : {true, false}) {
    SimulatedTraining now{.layout = {4, 1, 1}, .gradientSum = shortTransfer ? 1e-4 : 4e-3};
    now.slowRanks[2] = 1.15;
    const Suspicion suspicion = comparePeers(profilesOf(now.run(3, 1)), now.shapes());
    ASSERT_EQ(suspicion.ranks.size(), shortTransfer ? 1U : 0U) << suspicion.reason;
    if (shortTransfer) {
      EXPECT_EQ(suspicion.ranks[0].rank, 2);
    }
  }
}

TEST(Peers, AreGroupsOfEqualVolumeOnly) {
  // Four pairs; the last one's messages take three times as long.
  for (const double lastBytes : {1e6, 3e6}) {
    std::vector<RankNow> ranks;
    std::vector<CommunicatorShape> shapes;
    for (Rank rank = 0; rank < 8; ++rank) {
      const auto pair = static_cast<CommunicatorId>(rank) / 2 + 1;
      ranks.push_back({rank, {.own = 0.1, .inLibrary = 0.03, .communicators = {{pair, pair == 4 ? 0.06 : 0.02}}}});
      if (rank % 2 == 0) shapes.push_back({pair, {rank, rank + 1}, 0, 4, pair == 4 ? lastBytes : 1e6});
    }
    const Suspicion suspicion = comparePeers(ranks, shapes);
    ASSERT_EQ(suspicion.groups.size(), lastBytes == 1e6 ? 1U : 0U) << suspicion.reason;
    if (lastBytes == 1e6) {
      EXPECT_EQ(suspicion.groups[0].communicator, 4U);
    }
  }
}

}  // namespace
}  // namespace falcon::diagnose
