#include "reshape/recovery.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace falcon::reshape {
namespace {

using testing::ElementsAre;

Findings own(std::vector<Found> iterations) {
  return {0, true, false, std::move(iterations), {}, {}};
}
Findings replica(int group, std::vector<Found> iterations) {
  return {group, false, true, {}, std::move(iterations), {}};
}

TEST(Recovery, IsFromTheNewestThatAllHave) {
  EXPECT_EQ(chooseRecovery({own({30, 20, 10}), own({20, 10}), own({30, 20})}, true)->iteration, 20u);
  EXPECT_FALSE(chooseRecovery({own({30}), own({20})}, true));
  EXPECT_FALSE(chooseRecovery({own({30}), own({})}, true));
  EXPECT_FALSE(chooseRecovery({}, true));
}

TEST(Recovery, ASpoiledOneIsPassedOver) {
  const std::vector<Findings> all{own({30, 20, 10}), own({30, 20, 10})};
  EXPECT_EQ(chooseRecovery(all, true, {30})->iteration, 20u);
  EXPECT_FALSE(chooseRecovery(all, true, {10, 20, 30}));
}

// Rank 1 had not replaced its part of iteration 30 when the second run was ended.
TEST(Recovery, PartsOfDifferentRunsAreNotOneCheckpoint) {
  EXPECT_EQ(chooseRecovery({own({{30, 2}, {20, 1}}), own({{30, 1}, {20, 1}})}, true)->iteration, 20u);
  EXPECT_EQ(chooseRecovery({own({{30, 2}, {20, 1}}), own({{30, 2}, {20, 1}})}, true)->iteration, 30u);
}

TEST(Recovery, OneOfAGroupReadsForAll) {
  const std::vector<Findings> all{replica(0, {10}), replica(1, {20}), replica(0, {20, 10}), replica(1, {20, 10})};
  const auto chosen = chooseRecovery(all, true);
  ASSERT_TRUE(chosen);
  EXPECT_EQ(chosen->iteration, 20u);
  EXPECT_THAT(chosen->readers, ElementsAre(2, 1, 2, 1));
  EXPECT_EQ(chooseRecovery(all, true, {20})->iteration, 10u);
}

TEST(Recovery, WithoutABroadcastEverybodyReadsForItself) {
  const std::vector<Findings> all{replica(0, {10}), replica(0, {20, 10})};
  const auto chosen = chooseRecovery(all, false);
  ASSERT_TRUE(chosen);
  EXPECT_EQ(chosen->iteration, 10u);
  EXPECT_THAT(chosen->readers, ElementsAre(0, 1));
}

TEST(Recovery, WordsComeBackAndCutOnesAreRefused) {
  const Findings findings{3, true, true, {{5, 77}, {4, 70}}, {{9, 77}}, "no folder"};
  const std::string bytes = encode(findings);
  const auto back = decodeFindings(bytes);
  ASSERT_TRUE(back);
  EXPECT_EQ(back->group, 3);
  EXPECT_EQ(back->own, findings.own);
  EXPECT_EQ(back->replicated, findings.replicated);
  EXPECT_EQ(back->problem, findings.problem);
  for (std::size_t length = 0; length < bytes.size(); ++length) EXPECT_FALSE(decodeFindings(bytes.substr(0, length)));
}

}  // namespace
}  // namespace falcon::reshape
