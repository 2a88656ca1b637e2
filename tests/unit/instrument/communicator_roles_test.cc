#include "instrument/communicator_roles.h"

#include <gtest/gtest.h>

namespace falcon::instrument {
namespace {

TEST(CommunicatorRoles, AGroupInsideOfAPipelineTellsNothing) {
  // Stages {0, 1}, {2, 3}, {4, 5}; the first and last share an embedding.
  const CommunicatorShape shapes[] = {{1, {0, 1}, 3, 0},    {2, {2, 3}, 2, 0},    {3, {4, 5}, 4, 0},
                                      {4, {0, 2, 4}, 0, 9}, {5, {1, 3, 5}, 0, 9}, {6, {0, 4}, 1, 0}};
  const auto roles = inferRoles(shapes);
  EXPECT_EQ(roles.at(6), CommunicatorRole::unknown);
  for (const CommunicatorId data : {1, 2, 3})
    EXPECT_EQ(roles.at(data), CommunicatorRole::data) << "fewer than messages";
  EXPECT_EQ(ranksOfEqualWork(shapes, roles), (std::vector<std::vector<Rank>>{{0, 1}, {2, 3}, {4, 5}}));
}

TEST(CommunicatorRoles, OneForAllBesideOthersIsTheJobs) {
  const CommunicatorShape shapes[] = {{1, {0, 1, 2, 3}, 1, 0}, {2, {0, 2}, 8, 0}, {3, {1, 3}, 8, 0}, {4, {0, 1}, 0, 0}};
  const auto roles = inferRoles(shapes);
  EXPECT_EQ(roles.at(1), CommunicatorRole::job);
  EXPECT_EQ(roles.at(2), CommunicatorRole::data);
  EXPECT_EQ(roles.at(4), CommunicatorRole::unknown) << "it is not used";
}

}  // namespace
}  // namespace falcon::instrument
