// How many links run together once it is known how fast they are.
#include "validate/wave_queue.h"

#include <gtest/gtest.h>

#include <numeric>
#include <set>

#include "validate/test_time.h"

namespace falcon::validate {
namespace {

constexpr double slow = 6e6, fast = 2e9;

TestedGroup ringOf(int size) {
  TestedGroup group{.id = 1, .jobRanks = std::vector<Rank>(static_cast<std::size_t>(size)), .ring = {}};
  std::iota(group.jobRanks.begin(), group.jobRanks.end(), 0);
  return group;
}

/// Ranks of one machine, each with an address of its own.
std::map<Rank, RankSite> sitesOf(int size) {
  std::map<Rank, RankSite> sites;
  for (Rank rank = 0; rank < size; ++rank)
    sites[rank] = {"node" + std::to_string(rank), "10.0.0." + std::to_string(rank), "machine"};
  return sites;
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
  WaveQueue queue(sitesOf(size), 2, 7);
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
  WaveQueue queue(sitesOf(8), 2, 1);
  queue.add(linksOf(ringOf(8)));
  std::size_t waves = 0;
  for (; queue.next(); ++waves) queue.learn({});
  EXPECT_EQ(waves, 16u);
}

// The first link is the slow one: the others are measured together, turn out to be fast, and are measured again alone.
TEST(WaveQueue, WhatWasMeasuredInACrowdIsMeasuredAgain) {
  WaveQueue queue(sitesOf(8), 2, 1);
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
  WaveQueue queue(sitesOf(4), 2, 1);
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

/// Pairs of a star, as when the slowest pair of every sender is that to rank 0.
std::vector<WaveLink> starOf(int size) {
  std::vector<WaveLink> links;
  for (const bool back : {false, true})
    for (Rank rank = 2; rank < size - 1; ++rank)
      links.push_back(back ? WaveLink{1, {0, rank}, 0, rank} : WaveLink{1, {rank, 0}, rank, 0});
  return links;
}

TEST(WaveQueue, OfWantedLinksTheFirstOfEachRankAreNeverLeftOut) {
  WaveQueue queue(sitesOf(8), 2, 1);
  queue.addInRounds(starOf(8));  // 2 <-> 0 is wanted most, then 3 <-> 0 ...
  std::vector<Link> tested;
  while (!queue.nextIsIfTime()) tested.push_back(queue.next()->links.at(0).link);
  EXPECT_EQ(tested, (std::vector<Link>{{2, 0}, {0, 2}}));
  EXPECT_EQ(queue.next()->links.at(0).link, (Link{3, 0}));
  const std::vector<Link> left = queue.leaveOut();
  EXPECT_EQ(left, (std::vector<Link>{{0, 3}, {4, 0}, {0, 4}, {5, 0}, {0, 5}, {6, 0}, {0, 6}}));
  EXPECT_FALSE(queue.next());
}

TEST(WaveQueue, ARoundHasAPairOfEveryRank) {
  WaveQueue queue(sitesOf(6), 100, 1);
  const auto link = [](Rank from, Rank to) { return WaveLink{1, {from, to}, from, to}; };
  // 1 <-> 2 has to wait for its turn, and keeps nobody from it.
  queue.addInRounds(std::vector{link(0, 1), link(1, 2), link(2, 3), link(4, 5), link(1, 0)});
  std::vector<std::size_t> sizes;
  while (const auto wave = queue.next()) sizes.push_back(wave->links.size());
  EXPECT_EQ(sizes, (std::vector<std::size_t>{3, 1, 1}));
}

// ---- how long a validation is planned to take ----

/// What one wave takes at 50 Mbit/s, measured: 0.29 s with long rounds, 0.15 s with brief ones.
double secondsOf(const Wave& wave) {
  return wave.brief ? 0.15 : 0.29;
}

struct Planned {
  double seconds = 0.7;  ///< since all are held; the compute tests come first
  std::size_t links = 0, left = 0;
};

/// As LiveValidation does it. `confirming`: what looks slow in the end.
Planned plan(WaveQueue& queue, const std::vector<WaveLink>& confirming) {
  Planned planned;
  TestTime time;
  const auto asTime = [](double seconds) { return Nanoseconds(static_cast<std::int64_t>(seconds * 1e9)); };
  for (std::size_t again = 0; again <= TestTime::confirmations; ++again) {
    for (;;) {
      if (queue.nextIsIfTime() && !time.allowsMore(asTime(planned.seconds), confirming.empty() ? 0 : 1))
        planned.left += queue.leaveOut().size();
      const auto wave = queue.next();
      if (!wave) break;
      planned.seconds += secondsOf(*wave);
      planned.links += wave->links.size();
      time.took(asTime(secondsOf(*wave)));
      queue.learn(measured(*wave, slow));
    }
    queue.add(confirming);
  }
  return planned;
}

TEST(TimeOfATest, TheOtherWayOfWhatIsNamedIsMeasuredWhileItsWaveEndsInTime) {
  TestTime time;
  time.took(200ms);
  time.took(600ms);
  time.took(300ms);
  EXPECT_TRUE(time.allowsOther(2400ms));
  EXPECT_FALSE(time.allowsOther(2401ms));
  EXPECT_FALSE(time.allowsMore(2400ms, 0)) << "others need the time to be confirmed, too";
}

class PlannedTime : public testing::TestWithParam<int> {};

TEST_P(PlannedTime, OfAGroupWithOneSlowLinkStaysBelowThreeSeconds) {
  const int size = GetParam();
  for (const int trees : {0, 1, 2}) {
    TestedGroup group = ringOf(size);
    group.trees = trees;
    const std::vector<WaveLink> links = linksOf(group);
    WaveQueue queue(sitesOf(size), 2, 1);
    queue.add(links);
    const Planned planned = plan(queue, {links.front()});
    EXPECT_LE(planned.seconds, trees == 0 ? 2.46 : 2.66) << trees << " trees";
    EXPECT_EQ(planned.links, links.size() + TestTime::confirmations);
    EXPECT_EQ(planned.left, 0u);
  }
}
INSTANTIATE_TEST_SUITE_P(Ranks, PlannedTime, testing::Values(4, 8, 16, 32, 64));

TEST(PlannedTime, OfAnExchangeAmongEightIsTwoAndAHalfSeconds) {
  for (const bool oneIsSlow : {false, true}) {
    const std::vector<WaveLink> ring = linksOf(ringOf(8)), star = starOf(8);
    WaveQueue queue(sitesOf(8), 2, 1);
    queue.add(ring);
    queue.addInRounds(star);
    const Planned planned = plan(queue, oneIsSlow ? std::vector{ring.front()} : std::vector<WaveLink>{});
    EXPECT_LE(planned.seconds, 2.5) << planned.links << " links";
    EXPECT_GE(planned.links, ring.size() + 2);
    EXPECT_EQ(planned.links + planned.left, ring.size() + star.size() + (oneIsSlow ? TestTime::confirmations : 0));
    EXPECT_GT(planned.left, 0u);
  }
}

}  // namespace
}  // namespace falcon::validate
