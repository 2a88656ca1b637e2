#include "rebalance/ski_rental.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace falcon::rebalance {
namespace {

const std::vector<PricedStrategy> prices{{Strategy::ignore, 0},
                                         {Strategy::reroute, 1},
                                         {Strategy::splitMicroBatches, 5},
                                         {Strategy::changeTopology, 60},
                                         {Strategy::restart, 600}};

TEST(SkiRental, WalksUpAsTheLossPassesEachPrice) {
  EXPECT_EQ(strategyDue(0, prices), Strategy::ignore);
  EXPECT_EQ(strategyDue(1, prices), Strategy::reroute);
  EXPECT_EQ(strategyDue(59.9, prices), Strategy::splitMicroBatches);
  EXPECT_EQ(strategyDue(60, prices), Strategy::changeTopology);
  EXPECT_EQ(strategyDue(1e6, prices), Strategy::restart);
  EXPECT_EQ(strategyDue(1, {}), std::nullopt);
  EXPECT_EQ(strategyDue(1, std::vector<PricedStrategy>{{Strategy::restart, 600}}), std::nullopt);
}

TEST(SkiRental, CostsAtMostTwiceWhatForesightWould) {
  // One remedy: pay the loss of every iteration until it is due, then its price. Foresight pays the smaller of both.
  std::mt19937 random(1);
  for (int round = 0; round < 500; ++round) {
    const double loss = 0.1 + random() % 50 * 0.1, price = 1 + random() % 300;
    const int slowFor = 1 + static_cast<int>(random() % 200);
    const std::vector<PricedStrategy> possible{{Strategy::splitMicroBatches, price}};
    double paid = 0;
    for (int i = 1; i <= slowFor; ++i) {
      paid += loss;
      if (strategyDue(accumulatedLoss(i, 1 + loss, 1), possible)) {
        paid += price;
        break;
      }
    }
    EXPECT_LE(paid, 2 * std::min(price, slowFor * loss) + loss + 1e-9);
  }
}

/// Ladders of one to four remedies: what costs more leaves less.
std::vector<Remedy> randomLadder(std::mt19937& random, std::size_t remedies) {
  std::uniform_real_distribution<> any(0, 1);
  std::vector<Remedy> ladder(remedies);
  double price = 0, remaining = 1;
  for (Remedy& each : ladder) {
    each = {.priceSeconds = price += 0.1 + 100 * any(random), .remaining = remaining *= any(random)};
    if (any(random) < 0.2) price *= 10;
  }
  if (any(random) < 0.5) ladder.back().remaining = 0;
  return ladder;
}

constexpr double durationGrid[] = {0.01, 0.1, 0.5, 1, 2, 5, 10, 20, 50, 99, 100, 101, 150, 200, 500, 1e3, 1e4, 1e6};

double worstRatio(std::span<const Remedy> ladder, std::span<const double> thresholds) {
  double worst = 0;
  // Also just when something is bought, which is when it hurts most.
  std::vector<double> durations(std::begin(durationGrid), std::end(durationGrid));
  double loss = 0, time = 0, rate = 1;
  for (std::size_t i = 0; i < ladder.size() && rate > 0; ++i) {
    time += std::max(0.0, thresholds[i] - loss) / rate;
    loss = std::max(loss, thresholds[i]);
    rate = ladder[i].remaining;
    durations.push_back(time);
  }
  for (const double duration : durations)
    worst = std::max(worst, costOf(ladder, thresholds, duration) / leastCostOf(ladder, duration));
  return worst;
}

TEST(SkiRental, OfOneRemedyIsTwoCompetitiveWhateverTheDuration) {
  double worst = 0;
  for (const double price : {0.5, 1.0, 60.0, 600.0}) {
    const std::vector<Remedy> one{{price, 0}};
    worst = std::max(worst, worstRatio(one, thresholdsOf(one)));
    EXPECT_EQ(competitiveBound(one), 2);
  }
  EXPECT_LE(worst, 2 + 1e-9);
  EXPECT_GT(worst, 1.999) << "a looser test than the bound would pass anything";
}

TEST(SkiRental, OfALadderKeepsItsStatedBound) {
  std::mt19937 random(2);
  for (int round = 0; round < 2000; ++round) {
    const auto ladder = randomLadder(random, 1 + random() % 4);
    ASSERT_LE(worstRatio(ladder, thresholdsOf(ladder)), competitiveBound(ladder) * (1 + 1e-9));
  }
  // Two remedies of like prices are its worst place; what is bought before a restart costs next to nothing beside it.
  EXPECT_DOUBLE_EQ(competitiveBound(std::vector<Remedy>{{0.5, 0.9}, {1, 0.5}, {60, 0.2}, {600, 0}}), 1 + 1.5);
}

TEST(SkiRental, WithAPriorCostsNoMoreThereAndStaysBounded) {
  std::mt19937 random(3);
  constexpr double trust = 0.5;
  double saved = 0;
  for (int round = 0; round < 200; ++round) {
    const auto ladder = randomLadder(random, 1 + random() % 3);
    std::vector<double> durations(20);
    std::exponential_distribution<> lasting(1 / (1 + static_cast<double>(random() % 300)));
    for (double& each : durations) each = lasting(random);
    const auto plain = thresholdsOf(ladder), informed = thresholdsFor(ladder, durations, trust);
    double before = 0, after = 0;
    for (const double duration : durations) {
      before += costOf(ladder, plain, duration);
      after += costOf(ladder, informed, duration);
    }
    ASSERT_LE(after, before * (1 + 1e-9));
    saved += 1 - after / before;
    const double bound = ladder.size() == 1 ? 1 + 1 / trust : (1 + (competitiveBound(ladder) - 1) / trust) / trust;
    ASSERT_LE(worstRatio(ladder, informed), bound * (1 + 1e-9));
    ASSERT_TRUE(std::is_sorted(informed.begin(), informed.end()));
  }
  EXPECT_GT(saved / 200, 0.02);
  const std::vector<Remedy> one{{100, 0}};
  EXPECT_EQ(thresholdsFor(one, std::vector<double>(9, 1e4)), std::vector<double>{50}) << "they last: soon";
  EXPECT_GT(thresholdsFor(one, std::vector<double>(9, 120)).front(), 120) << "they end first: wait";
  EXPECT_EQ(thresholdsFor(one, {}), std::vector<double>{100});
}

TEST(SkiRental, PricesFollowWhatItTook) {
  Prices prices;
  EXPECT_EQ(prices.of(Strategy::splitMicroBatches, 0.5), 1);
  EXPECT_EQ(prices.of(Strategy::restart, 0.5), 600);
  EXPECT_EQ(prices.of(Strategy::restart, 0.5, 42), 42);
  prices.took(Strategy::splitMicroBatches, 3, 0.5);
  EXPECT_EQ(prices.of(Strategy::splitMicroBatches, 0.5), 2);
  for (int i = 0; i < 20; ++i) prices.took(Strategy::splitMicroBatches, 5, 0.5);
  EXPECT_NEAR(prices.of(Strategy::splitMicroBatches, 0.5), 5, 1e-3);
  for (int i = 0; i < 20; ++i) prices.took(Strategy::splitMicroBatches, 0, 0.5);
  EXPECT_EQ(prices.of(Strategy::splitMicroBatches, 0.5), 1);
  prices.took(Strategy::changeTopology, 1, 0.5, 1.5);
  EXPECT_EQ(prices.of(Strategy::changeTopology, 0.5, 1.5), 1.25) << "it was measured to be cheap, and took less";
}

TEST(CoolDown, WaitsLongerEachTimeARemedyDidNotPay) {
  CoolDown coolDown;
  Nanoseconds now = 100s;
  EXPECT_TRUE(coolDown.allows(now));
  for (const Nanoseconds pause : {30s, 60s, 120s, 240s, 480s, 600s, 600s}) {
    coolDown.applied(now);
    coolDown.undone(now += 5s, 1);
    EXPECT_FALSE(coolDown.allows(now + pause - 1ns));
    EXPECT_TRUE(coolDown.allows(now + pause));
    now += pause;
  }
  coolDown.applied(now);
  coolDown.undone(now += 10s, 1);
  EXPECT_TRUE(coolDown.allows(now)) << "it paid";
  coolDown.applied(now);
  coolDown.undone(now += 1s, 1);
  EXPECT_EQ(coolDown.until(), now + 30s) << "the first one in a row again";
  coolDown.undone(now, 1);
  EXPECT_EQ(coolDown.until(), now + 30s) << "what was not applied is not undone";
}

TEST(SkiRental, CountsNoNegativeLoss) {
  EXPECT_EQ(accumulatedLoss(10, 1, 2), 0);
}

}  // namespace
}  // namespace falcon::rebalance
