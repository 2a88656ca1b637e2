#include "gpu/engine_choice.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace falcon::gpu {
namespace {

EngineOffer offer(EngineWish wish, bool works) {
  return {22809, wish, works, works ? "" : "no driver"};
}

/// Every mix of the six possible answers of three ranks, and a larger one.
std::vector<std::vector<EngineOffer>> allMixes() {
  std::vector<EngineOffer> kinds;
  for (const auto wish : {EngineWish::automatic, EngineWish::host, EngineWish::vendor})
    for (const bool works : {false, true}) kinds.push_back(offer(wish, works));
  std::vector<std::vector<EngineOffer>> mixes;
  for (const auto& a : kinds)
    for (const auto& b : kinds)
      for (const auto& c : kinds) mixes.push_back({a, b, c});
  return mixes;
}

TEST(EngineChoice, FollowsEveryWishOrRefuses) {
  for (const auto& mix : allMixes()) {
    const auto has = [&](EngineWish wish) {
      return std::any_of(mix.begin(), mix.end(), [&](const auto& one) { return one.wish == wish; });
    };
    const bool allWork = std::all_of(mix.begin(), mix.end(), [](const auto& one) { return one.vendorWorks; });
    const auto kind = chooseEngine(mix);
    const bool contradiction = has(EngineWish::host) && has(EngineWish::vendor);
    const bool impossible = has(EngineWish::vendor) && !allWork;
    ASSERT_EQ(static_cast<bool>(kind), !contradiction && !impossible);
    if (!kind) {
      EXPECT_EQ(kind.error().code(), ErrorCode::invalidUsage);
    } else if (has(EngineWish::host) || !allWork) {
      EXPECT_EQ(*kind, EngineKind::host);
    } else {
      EXPECT_EQ(*kind, EngineKind::vendor);
    }
  }
}

TEST(EngineChoice, NamesTheRankThatCannot) {
  const std::vector<EngineOffer> mix = {offer(EngineWish::vendor, true), offer(EngineWish::automatic, true),
                                        offer(EngineWish::automatic, false)};
  const auto kind = chooseEngine(mix);
  ASSERT_FALSE(kind);
  EXPECT_NE(kind.error().message().find("rank 2 cannot: no driver"), std::string::npos) << kind.error().message();
}

TEST(EngineChoice, RefusesDifferentVersions) {
  std::vector<EngineOffer> mix(4, offer(EngineWish::automatic, false));
  mix[3].version = 22708;
  const auto kind = chooseEngine(mix);
  ASSERT_FALSE(kind);
  EXPECT_EQ(kind.error().code(), ErrorCode::invalidUsage);
  EXPECT_NE(kind.error().message().find("rank 3"), std::string::npos);
}

TEST(EngineOffer, SurvivesTheWireAndEveryCutOfItIsRefused) {
  const EngineOffer sent{22809, EngineWish::vendor, true, "why not"};
  const std::string bytes = sent.encode();
  const auto got = EngineOffer::decode(bytes);
  ASSERT_TRUE(got);
  EXPECT_EQ(got->version, sent.version);
  EXPECT_EQ(got->wish, sent.wish);
  EXPECT_EQ(got->vendorWorks, sent.vendorWorks);
  EXPECT_EQ(got->obstacle, sent.obstacle);
  for (size_t length = 0; length < bytes.size(); ++length) EXPECT_FALSE(EngineOffer::decode(bytes.substr(0, length)));
  EXPECT_FALSE(EngineOffer::decode(bytes + "x"));
  std::string badWish = bytes;
  badWish[4] = 9;
  EXPECT_FALSE(EngineOffer::decode(badWish));
}

}  // namespace
}  // namespace falcon::gpu
