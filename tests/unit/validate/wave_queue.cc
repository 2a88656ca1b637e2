// How many links run together once it is known how fast they are.
#include "validate/wave_queue.h"

#include <gtest/gtest.h>

#include <numeric>
#include <set>

namespace falcon::validate {
namespace {

constexpr double slow = 6e6, fast = 2e9;

TestedGroup ringOf(int size) {
  TestedGroup group{.id = 1, .jobRanks = std::vector<Rank>(static_cast<std::size_t>(size)), .ring = {}};
  std::iota(group.jobRanks.begin(), group.jobRanks.end(), 0);
  return group;
}

/// Ranks of one machine, each with an address of its own.
std::map<Rank, RankPlace> placesOf(int size) {
  std::map<Rank, RankPlace> places;
  for (Rank rank = 0; rank < size; ++rank)
    places[rank] = {"node" + std::to_string(rank), "10.0.0." + std::to_string(rank), "machine"};
  return places;
}

std::vector<LinkMeasurement> measured(const Wave& wave, double bytesPerSecond) {
  std::vector<LinkMeasurement> measurements;
  for (const WaveLink& link : wave.links)
    measurements.push_back({.communicator = link.communicator,
                            .link = link.link,
                            .status = LinkStatus::measured,
                            .bytes = 1 << 20,
                            .seconds = (1 << 20) / bytesPerSecond});
  return measurements;
}

/// Sizes of the waves where every link is so fast.
std::vector<std::size_t> wavesOf(int size, double bytesPerSecond) {
  WaveQueue queue(placesOf(size), 2, 7);
  queue.add(linksOf(ringOf(size)));
  std::vector<std::size_t> sizes;
  while (const auto wave = queue.next()) {
    EXPECT_EQ(wave->run, 7 + sizes.size());
    sizes.push_back(wave->links.size());
    queue.learn(measured(*wave, bytesPerSecond));
  }
  return sizes;
}

class SlowLinks : public testing::TestWithParam<int> {};

TEST_P(SlowLinks, RunInOneWaveForEachPassAfterACarefulOne) {
  const auto size = static_cast<std::size_t>(GetParam());
  EXPECT_EQ(wavesOf(GetParam(), slow), (std::vector<std::size_t>{1, size / 2 - 1, size / 2, size / 2, size / 2}));
}
INSTANTIATE_TEST_SUITE_P(EvenRings, SlowLinks, testing::Values(4, 6, 8, 16, 32, 64));

TEST(WaveQueue, FastLinksHaveTheCoresToThemselves) {
  EXPECT_EQ(wavesOf(8, fast), std::vector<std::size_t>(16, 1));
}

TEST(WaveQueue, WithoutAnswersItStaysCareful) {
  WaveQueue queue(placesOf(8), 2, 1);
  queue.add(linksOf(ringOf(8)));
  std::size_t waves = 0;
  for (; queue.next(); ++waves) queue.learn({});
  EXPECT_EQ(waves, 16u);
}

// The first link is the slow one: the others are measured together, turn out to be fast, and are measured again alone.
TEST(WaveQueue, WhatWasMeasuredInACrowdIsMeasuredAgain) {
  WaveQueue queue(placesOf(8), 2, 1);
  queue.add(linksOf(ringOf(8)));
  const auto first = queue.next();
  queue.learn(measured(*first, slow));
  const auto crowd = queue.next();
  ASSERT_EQ(crowd->links.size(), 3u);
  queue.learn(measured(*crowd, fast));
  std::multiset<Link> alone;
  while (const auto wave = queue.next()) {
    EXPECT_EQ(wave->links.size(), 1u);
    for (const WaveLink& link : wave->links) alone.insert(link.link);
    queue.learn(measured(*wave, fast));
  }
  EXPECT_EQ(alone.size(), 15u);
  for (const WaveLink& link : crowd->links) EXPECT_EQ(alone.count(link.link), 1u);
  EXPECT_EQ(alone.count(first->links.front().link), 0u);
}

TEST(WaveQueue, TakesMoreLinksLater) {
  WaveQueue queue(placesOf(4), 2, 1);
  queue.add(std::vector<WaveLink>{{1, {0, 1}, 0, 1}});
  ASSERT_TRUE(queue.next());
  ASSERT_FALSE(queue.next());
  queue.add(std::vector<WaveLink>{{1, {0, 1}, 0, 1}, {1, {2, 3}, 2, 3}});
  ASSERT_TRUE(queue.next());
  ASSERT_TRUE(queue.next());
  EXPECT_FALSE(queue.next());
  EXPECT_EQ(queue.waves().size(), 3u);
  EXPECT_EQ(queue.passes(), 2u);
}

}  // namespace
}  // namespace falcon::validate
