#include "demo/schedule.h"

#include <gtest/gtest.h>

#include <set>

#include "demo/evaluation.h"

namespace falcon::demo {
namespace {

TEST(Schedule, OneRankAndOneLinkWithinTheirBounds) {
  const JobShape shape;
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    const auto injections = drawSchedule(seed, shape);
    ASSERT_EQ(injections.size(), 2u);
    EXPECT_NE(injections[0].culprit.kind, injections[1].culprit.kind);
    for (const Injection& injection : injections) {
      EXPECT_GE(injection.factor, 1.3);
      EXPECT_LE(injection.factor, 3);
      if (injection.culprit.kind == CulpritKind::rank) {
        EXPECT_GE(injection.culprit.rank, 0);
        EXPECT_LT(injection.culprit.rank, shape.ranks);
      } else {
        // A link of a gradient ring: the same stage, the next replica, another node.
        const Link link = injection.culprit.link;
        EXPECT_EQ(link.from % shape.pipelineParallel, link.to % shape.pipelineParallel);
        EXPECT_EQ((link.from / shape.pipelineParallel + 1) % shape.dataParallel, link.to / shape.pipelineParallel);
      }
    }
    // Until the next is begun, or the job ends, all of what comes after an injection has its time.
    constexpr double watching = 5;  // `falcon inject` watches the victim first
    EXPECT_GE(injections[1].start, injections[0].start + watching + injections[0].length + aftermathSeconds);
    EXPECT_GE(shape.seconds, injections[1].start + watching + injections[1].length + aftermathSeconds);
  }
}

TEST(Schedule, TheSameSeedDrawsTheSameAndSeedsDiffer) {
  std::set<std::pair<Rank, Link>> drawn;
  std::set<bool> bothWays, rankFirst;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const auto one = drawSchedule(seed, {}), two = drawSchedule(seed, {});
    for (int i = 0; i < 2; ++i) {
      EXPECT_EQ(one[i].culprit, two[i].culprit);
      EXPECT_EQ(one[i].start, two[i].start);
      EXPECT_EQ(one[i].factor, two[i].factor);
      if (one[i].culprit.kind == CulpritKind::link) bothWays.insert(one[i].culprit.bothWays);
    }
    const bool first = one[0].culprit.kind == CulpritKind::rank;
    rankFirst.insert(first);
    drawn.insert({one[first ? 0 : 1].culprit.rank, one[first ? 1 : 0].culprit.link});
  }
  EXPECT_GT(drawn.size(), 40u);  // 64 there are
  EXPECT_EQ(bothWays.size(), 2u);
  EXPECT_EQ(rankFirst.size(), 2u);
}

}  // namespace
}  // namespace falcon::demo
