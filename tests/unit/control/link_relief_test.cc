#include "control/link_relief.h"

#include <gtest/gtest.h>

#include <random>

namespace falcon::control {
namespace {

using transport::Medium;

constexpr Link slow{3, 5}, back{5, 3}, peer{1, 7}, otherPeer{7, 1};

/// 10 MB/s in health, `factor` times slower in the trap.
LinkRelief oneWay(double factor) {
  return {{{slow, 1e7 / factor, 1e7}}, {{peer, 1e7}, {otherPeer, 1e7}}};
}
LinkRelief bothWays(double factor) {
  return {{{slow, 1e7 / factor, 1e7}, {back, 1e7 / factor, 1e7}}, {{peer, 1e7}}};
}

/// Whether the newest of ten equal probes is taken for relief.
bool isRelief(LinkRelief relief, const std::map<Link, double>& rates) {
  bool healthy = false;
  for (int probe = 0; probe < 10; ++probe) healthy = relief.add(rates);
  return healthy;
}

TEST(LinkRelief, IsNineTenthsOfAHealthyPeerAndNotTwiceTheSlowRate) {
  // What was called "as fast as before": 9.5 MB/s after 4.7, of 2286.
  const LinkRelief unshaped({{slow, 4.7e6, 2.286e9}}, {{peer, 2.286e9}});
  EXPECT_FALSE(isRelief(unshaped, {{slow, 9.5e6}, {peer, 4e8}}));
  EXPECT_FALSE(isRelief(unshaped, {{slow, 3e8}, {peer, 4e8}}));
  EXPECT_TRUE(isRelief(unshaped, {{slow, 3.7e8}, {peer, 4e8}}));
  for (const double factor : {1.3, 1.5, 2.0, 3.0, 500.0}) {
    EXPECT_FALSE(isRelief(oneWay(factor), {{slow, 1e7 / factor}, {peer, 1e7}, {otherPeer, 1e7}})) << factor;
    EXPECT_FALSE(isRelief(oneWay(factor), {{slow, 0.85e7}, {peer, 1e7}, {otherPeer, 1e7}})) << factor;
    EXPECT_TRUE(isRelief(oneWay(factor), {{slow, 0.95e7}, {peer, 1e7}, {otherPeer, 1e7}})) << factor;
  }
}

TEST(LinkRelief, NeedsEveryDirectionThatWasSlow) {
  EXPECT_FALSE(isRelief(bothWays(3), {{slow, 1e7}, {back, 0.33e7}, {peer, 1e7}}));
  EXPECT_FALSE(isRelief(bothWays(3), {{slow, 0.33e7}, {back, 1e7}, {peer, 1e7}}));
  EXPECT_FALSE(isRelief(bothWays(3), {{slow, 1e7}, {peer, 1e7}})) << "one gave no answer";
  EXPECT_TRUE(isRelief(bothWays(3), {{slow, 1e7}, {back, 1e7}, {peer, 1e7}}));
}

TEST(LinkRelief, IsNotThatThePeersAreSlowToo) {
  EXPECT_FALSE(isRelief(oneWay(3), {{slow, 0.33e7}, {peer, 0.33e7}, {otherPeer, 0.3e7}}));
  EXPECT_FALSE(isRelief(oneWay(3), {{slow, 1e7}})) << "no peer gave an answer";
}

TEST(LinkRelief, LetsTheTrainingTakeItsPartOfProbes) {
  LinkRelief relief = oneWay(1.5);
  // Every other probe shares the link with the training; the slow link is avoided by it.
  for (int probe = 0; probe < 60; ++probe)
    EXPECT_FALSE(relief.add({{slow, 0.667e7}, {peer, probe % 2 ? 0.5e7 : 1e7}, {otherPeer, 0.5e7}})) << probe;
  LinkRelief busy = oneWay(3);
  bool healthy = false;
  for (int probe = 0; probe < 6 && !healthy; ++probe)
    healthy = busy.add({{slow, probe % 2 ? 0.5e7 : 1e7}, {peer, 1e7}, {otherPeer, 0.6e7}});
  EXPECT_TRUE(healthy);
}

// Links that nobody shapes scatter by 0.3: relief is seen soon, and never while the link is four times slower.
TEST(LinkRelief, IsSeenAmongScatteredRates) {
  std::mt19937 random(1);
  std::normal_distribution<double> scatter(0, 0.3);
  const auto rate = [&](double usual) { return usual * std::exp(scatter(random)); };
  int probes = 0;
  for (int run = 0; run < 200; ++run) {
    LinkRelief relief({{slow, 1e7, 2e9}}, {{peer, 2e9}, {otherPeer, 2e9}});
    while (!relief.add({{slow, rate(2e9)}, {peer, rate(2e9)}, {otherPeer, rate(2e9)}})) ++probes;
    LinkRelief stillSlow({{slow, 1e7, 2e9}}, {{peer, 2e9}, {otherPeer, 2e9}});
    for (int probe = 0; probe < 100; ++probe)
      EXPECT_FALSE(stillSlow.add({{slow, rate(5e8)}, {peer, rate(2e9)}, {otherPeer, rate(2e9)}}));
  }
  EXPECT_LT(probes / 200.0, 8);
}

TEST(LinkRelief, MayBeWhereEveryDirectionIsFasterThanItWas) {
  LinkRelief relief = bothWays(3);
  EXPECT_FALSE(relief.mayBeHealthy());
  relief.add({{slow, 0.34e7}, {back, 1e7}, {peer, 1e7}});
  EXPECT_FALSE(relief.mayBeHealthy());
  relief.add({{slow, 0.8e7}, {back, 1e7}, {peer, 1e7}});
  EXPECT_TRUE(relief.mayBeHealthy());
  relief.add({{back, 1e7}, {peer, 1e7}});
  EXPECT_FALSE(relief.mayBeHealthy()) << "one gave no answer";
}

TEST(LinkRelief, WithoutPeersIsNearerToTheHealthyRate) {
  const LinkRelief alone({{slow, 1e6, 1e8}}, {});
  EXPECT_FALSE(isRelief(alone, {{slow, 5e6}}));
  EXPECT_TRUE(isRelief(alone, {{slow, 2e7}}));
}

TEST(LinkRelief, OfWhatAlwaysWasSlowerThanItsPeersIsItsOwnShare) {
  const LinkRelief slower({{slow, 1e6, 5e6}}, {{peer, 1e7}});
  EXPECT_FALSE(isRelief(slower, {{slow, 4e6}, {peer, 1e7}}));
  EXPECT_TRUE(isRelief(slower, {{slow, 4.8e6}, {peer, 1e7}}));
}

TEST(LinkRelief, CannotTellWhereSlowAndHealthyWereTheSame) {
  EXPECT_FALSE(isRelief(LinkRelief({{slow, 1e7, 1e7}}, {{peer, 1e7}}), {{slow, 1e7}, {peer, 1e7}}));
  EXPECT_FALSE(isRelief(LinkRelief(), {}));
}

std::vector<Link> chosen(const std::map<Link, LinkRate>& healthy, double expected,
                         const std::map<Link, double>& moving = {}) {
  std::vector<Link> links;
  for (const HealthyPeer& each : healthyPeers(healthy, Medium::socket, slow, expected, moving))
    links.push_back(each.link);
  return links;
}

TEST(HealthyPeers, AreOfTheSameMediumAndRateIdleAndElsewhere) {
  const std::map<Link, LinkRate> healthy = {{{3, 2}, {1e7, Medium::socket}},       {{1, 7}, {1e7, Medium::socket}},
                                            {{7, 1}, {1e7, Medium::socket}},       {{0, 2}, {1e9, Medium::socket}},
                                            {{4, 6}, {1e7, Medium::sharedMemory}}, {{2, 0}, {1.05e7, Medium::socket}}};
  EXPECT_EQ(chosen(healthy, 1e7, {{{1, 7}, 0.3}}), (std::vector<Link>{{2, 0}, {7, 1}}));
  EXPECT_EQ(chosen(healthy, 1e9).front(), (Link{0, 2}));
  EXPECT_EQ(chosen({{{3, 2}, {1e7, Medium::socket}}}, 1e7), (std::vector<Link>{{3, 2}}));
  EXPECT_TRUE(chosen({{{4, 6}, {1e7, Medium::sharedMemory}}}, 1e7).empty());
}

}  // namespace
}  // namespace falcon::control
