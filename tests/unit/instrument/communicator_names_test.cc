#include "instrument/communicator_names.h"

#include <gtest/gtest.h>

#include "base/format.h"

namespace falcon::instrument {
namespace {

/// Eight ranks, DP 4 x PP 2; every replica is a pipeline.
std::vector<CommunicatorShape> shapes() {
  return {{1, {0, 1, 2, 3, 4, 5, 6, 7}, 1, 0},
          {20, {1, 3, 5, 7}, 2, 0},
          {21, {0, 2, 4, 6}, 2, 0},
          {30, {0, 1}, 0, 32},
          {31, {2, 3}, 0, 32},
          {32, {4, 5}, 0, 32},
          {33, {6, 7}, 0, 32}};
}

TEST(CommunicatorNames, TellTheirPartAndWhoIsInThem) {
  const CommunicatorNames names(shapes());
  EXPECT_EQ(names.nameOf(20), "data parallel 1");
  EXPECT_EQ(names.titleOf(20), "data parallel 1: ranks 1, 3, 5, 7");
  EXPECT_EQ(names.membersOf(20), "ranks 1, 3, 5, 7 (data parallel 1)");
  EXPECT_EQ(names.titleOf(21), "data parallel 0: ranks 0, 2, 4, 6");
  EXPECT_EQ(names.titleOf(33), "pipeline 3: ranks 6, 7");
  EXPECT_EQ(names.titleOf(1), "whole job: ranks 0, 1, 2, 3, 4, 5, 6, 7");
}

TEST(CommunicatorNames, AreTheApplicationsToo) {
  const CommunicatorNames names(shapes(), {{20, "dp_1"}, {99, "lost"}});
  EXPECT_EQ(names.nameOf(20), "data parallel 1 \"dp_1\"");
  EXPECT_EQ(names.membersOf(20), "ranks 1, 3, 5, 7 (data parallel 1 \"dp_1\")");
  EXPECT_EQ(names.nameOf(99), "\"lost\"");
  EXPECT_EQ(names.titleOf(99), "communicator 0000000000000063 \"lost\"");
  EXPECT_EQ(names.membersOf(99), "the members of communicator 0000000000000063 (\"lost\")");
}

TEST(CommunicatorNames, AreNumbersOnlyWhereNothingIsKnown) {
  auto all = shapes();
  all.push_back({40, {0, 7}, 0, 0});   // not used yet
  all.push_back({41, {0, -1}, 3, 0});  // a member without a rank in the job
  const CommunicatorNames names(all);
  EXPECT_EQ(names.nameOf(40), "ranks 0, 7");
  EXPECT_EQ(names.titleOf(40), "ranks 0, 7");
  EXPECT_EQ(names.membersOf(40), "ranks 0, 7");
  for (const CommunicatorId id : {CommunicatorId{41}, CommunicatorId{42}}) {
    EXPECT_EQ(names.nameOf(id), fmt::format("communicator {:016x}", id));
    EXPECT_EQ(names.titleOf(id), names.nameOf(id));
    EXPECT_EQ(names.membersOf(id), "the members of " + names.nameOf(id));
  }
}

TEST(CommunicatorNames, TellTwoOfTheSameRanksApart) {
  auto all = shapes();
  all.push_back({22, {1, 3, 5, 7}, 2, 0});
  const CommunicatorNames names(all);
  EXPECT_EQ(names.nameOf(20), "data parallel 1");
  EXPECT_EQ(names.nameOf(22), "data parallel 1 #2");
}

TEST(RanksText, OfManyRanksIsTheirOrder) {
  const auto every = [](Rank first, Rank stride, int count) {
    std::vector<Rank> ranks;
    for (int i = count - 1; i >= 0; --i) ranks.push_back(first + i * stride);
    return ranks;
  };
  EXPECT_EQ(ranksText({3}), "rank 3");
  EXPECT_EQ(ranksText({5, 1}), "ranks 1, 5");
  EXPECT_EQ(ranksText(every(0, 1, 64)), "ranks 0 to 63");
  EXPECT_EQ(ranksText(every(3, 8, 64)), "64 ranks, one in 8 from 3 to 507");
  EXPECT_EQ(ranksText({0, 1, 2, 3, 4, 5, 6, 7, 9, 12}), "ranks 0, 1, 2, 3, 4, 5, 6, 7 and 2 more");
}

}  // namespace
}  // namespace falcon::instrument
