#include "diagnose/layout_guess.h"

#include <gtest/gtest.h>

#include <map>

namespace falcon::diagnose {
namespace {

struct Shape {
  int data, pipeline, tensor;
  bool outermost;
};

// As trainers do: a sum of gradients an iteration, messages for every micro-batch, sums in every layer of each.
std::vector<instrument::CommunicatorShape> groupsOf(const PlacedLayout& layout, bool pairs) {
  std::map<std::pair<int, int>, std::vector<Rank>> data, pipeline, tensor;
  std::vector<Rank> world;
  for (Rank rank = 0; rank < layout.sizes.size(); ++rank) {
    const auto at = layout.at(rank);
    data[{at.pipeline, at.tensor}].push_back(rank);
    pipeline[{at.data, at.tensor}].push_back(rank);
    tensor[{at.data, at.pipeline}].push_back(rank);
    world.push_back(rank);
  }
  std::vector<instrument::CommunicatorShape> groups;
  const auto add = [&](const std::vector<Rank>& ranks, double collectives, double messages) {
    groups.push_back({groups.size() + 1, ranks, collectives, messages});
  };
  for (const auto& [key, ranks] : data) add(ranks, 2, 0);
  for (const auto& [key, ranks] : tensor) add(ranks, 64, 0);
  for (const auto& [key, ranks] : pipeline) {
    if (!pairs) add(ranks, 0, 16);
    for (std::size_t at = 0; pairs && at + 1 < ranks.size(); ++at) add({ranks[at], ranks[at + 1]}, 0, 16);
  }
  add(world, 1, 0);
  return groups;
}

class LayoutGuess : public testing::TestWithParam<Shape> {};

TEST_P(LayoutGuess, FindsWhatTheGroupsWereMadeFrom) {
  const Shape& shape = GetParam();
  const PlacedLayout truth{{shape.data, shape.pipeline, shape.tensor}, shape.outermost};
  for (const bool pairs : {false, true}) {
    const auto guess = guessLayout(truth.sizes.size(), groupsOf(truth, pairs));
    ASSERT_TRUE(guess);
    for (Rank rank = 0; rank < truth.sizes.size(); ++rank) EXPECT_EQ(guess->at(rank), truth.at(rank)) << rank;
  }
}
INSTANTIATE_TEST_SUITE_P(Shapes, LayoutGuess,
                         testing::Values(Shape{2, 1, 1, false}, Shape{1, 4, 1, false}, Shape{2, 2, 1, false},
                                         Shape{2, 2, 1, true}, Shape{2, 2, 2, false}, Shape{2, 2, 2, true},
                                         Shape{4, 3, 2, false}, Shape{4, 3, 2, true}, Shape{8, 4, 4, true}));

TEST(LayoutGuess, SaysNothingWhereTheGroupsDoNotTell) {
  using Groups = std::vector<instrument::CommunicatorShape>;
  EXPECT_FALSE(guessLayout(8, {}));
  EXPECT_FALSE(guessLayout(4, Groups{{1, {0, 1, 2}, 1, 0}}));
  EXPECT_FALSE(guessLayout(4, Groups{{1, {0, 9}, 1, 0}}));
  EXPECT_FALSE(guessLayout(6, Groups{{1, {0, 1, 2, 3, 4, 5}, 0, 1}, {2, {0, 2}, 1, 0}}));
}

TEST(LayoutGuess, IsNotMisledByAGroupBesideTheLayout) {
  const PlacedLayout truth{{2, 4, 2}, true};
  auto groups = groupsOf(truth, false);
  groups.push_back({99, {0, 12}, 1, 0});  // first and last stage share an embedding
  const auto guess = guessLayout(truth.sizes.size(), groups);
  ASSERT_TRUE(guess);
  EXPECT_EQ(guess->sizes.pipelineSize, 4);
  EXPECT_EQ(guess->sizes.tensorSize, 2);
}

}  // namespace
}  // namespace falcon::diagnose
