#include "reshape/role_moves.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <random>

#include "topology/layout.h"

namespace falcon::reshape {
namespace {

using topology::Layout;

Roles identity(int size) {
  Roles roles(static_cast<std::size_t>(size));
  std::iota(roles.begin(), roles.end(), 0);
  return roles;
}

std::vector<int> placesOf(const Layout& layout) {
  std::vector<int> places;
  for (Rank role = 0; role < layout.size(); ++role) places.push_back(role % (layout.pipelineSize * layout.tensorSize));
  return places;
}

TEST(Roles, MustBeAPermutation) {
  EXPECT_TRUE(checkRoles(Roles{2, 0, 1}, 3));
  EXPECT_FALSE(checkRoles(Roles{2, 0}, 3));
  EXPECT_FALSE(checkRoles(Roles{2, 0, 2}, 3));
  EXPECT_FALSE(checkRoles(Roles{0, 1, 3}, 3));
  EXPECT_FALSE(checkRoles(Roles{0, 1, -1}, 3));
  EXPECT_NE(checkRoles(Roles{2, 0, 2}, 3).error().message().find("role 2"), std::string::npos);
}

class Moves : public testing::TestWithParam<Layout> {};

TEST_P(Moves, AreNoneWhereNobodyChanges) {
  const Roles roles = identity(GetParam().size());
  EXPECT_TRUE(movesFor(roles, roles, placesOf(GetParam())).empty());
}

/// Over random permutations of random permutations: what a rank gets is its new role's, from who has it.
TEST_P(Moves, GiveEveryoneTheStateOfItsNewRole) {
  const Layout layout = GetParam();
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    Roles before = identity(layout.size()), after = before;
    std::shuffle(before.begin(), before.end(), random);
    std::shuffle(after.begin(), after.end(), random);
    std::map<std::pair<Rank, bool>, int> got;
    for (const RoleMove& move : movesFor(before, after, placesOf(layout))) {
      const int had = before[static_cast<std::size_t>(move.from)];
      EXPECT_EQ(move.role, after[static_cast<std::size_t>(move.to)]);
      EXPECT_NE(before[static_cast<std::size_t>(move.to)], move.role);
      if (move.replicated) {
        EXPECT_EQ(layout.coordinatesOf(had).pipeline, layout.coordinatesOf(move.role).pipeline);
        EXPECT_EQ(layout.coordinatesOf(had).tensor, layout.coordinatesOf(move.role).tensor);
      } else {
        EXPECT_EQ(had, move.role);
      }
      ++got[{move.to, move.replicated}];
    }
    for (Rank rank = 0; rank < layout.size(); ++rank)
      for (const bool replicated : {false, true})
        EXPECT_EQ((got[{rank, replicated}]),
                  before[static_cast<std::size_t>(rank)] == after[static_cast<std::size_t>(rank)] ? 0 : 1);
  }
}

TEST_P(Moves, OfReplicatedStateGoOverNoLinkThatIsToBeAvoidedIfThereIsAnother) {
  const Layout layout = GetParam();
  if (layout.dataSize < 3) return;
  for (Rank one = 0; one < layout.size(); ++one)
    for (Rank other = 0; other < layout.size(); ++other) {
      const bool samePlace = layout.coordinatesOf(one).pipeline == layout.coordinatesOf(other).pipeline &&
                             layout.coordinatesOf(one).tensor == layout.coordinatesOf(other).tensor;
      if (one == other || samePlace) continue;
      const Roles before = identity(layout.size());
      Roles after = before;
      std::swap(after[static_cast<std::size_t>(one)], after[static_cast<std::size_t>(other)]);
      for (const RoleMove& move : movesFor(before, after, placesOf(layout), {{one, other}, {other, one}}))
        if (move.replicated) {
          EXPECT_TRUE(move.from != one && move.from != other) << one << " and " << other;
        }
    }
}

TEST_P(Moves, OfReplicatedStateAreSharedByThoseWhoHaveIt) {
  const Layout layout = GetParam();
  if (layout.pipelineSize < 2) return;
  // All replicas' first and second stages change places: everybody sends once.
  Roles before = identity(layout.size()), after = before;
  for (int data = 0; data < layout.dataSize; ++data)
    for (int tensor = 0; tensor < layout.tensorSize; ++tensor)
      std::swap(after[static_cast<std::size_t>(layout.rankAt({data, 0, tensor}))],
                after[static_cast<std::size_t>(layout.rankAt({data, 1, tensor}))]);
  std::map<Rank, int> sends;
  for (const RoleMove& move : movesFor(before, after, placesOf(layout)))
    if (move.replicated) ++sends[move.from];
  for (const auto& [rank, count] : sends) EXPECT_EQ(count, 1) << rank;
}
INSTANTIATE_TEST_SUITE_P(Of, Moves,
                         testing::Values(Layout{1, 2, 1}, Layout{2, 1, 1}, Layout{4, 2, 1}, Layout{2, 4, 1},
                                         Layout{2, 2, 2}, Layout{3, 3, 2}));

TEST(Moves, BetweenReplicasOfAPlaceNeedNothingOfWhatTheyHaveInCommon) {
  const Layout layout{2, 2, 1};
  const Roles before = identity(4), after{2, 1, 0, 3};
  for (const RoleMove& move : movesFor(before, after, placesOf(layout)))
    EXPECT_EQ(move.from, move.replicated ? move.to : holderOf(move.role, before));
}

}  // namespace
}  // namespace falcon::reshape
