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

TEST(SkiRental, CountsNoNegativeLoss) {
  EXPECT_EQ(accumulatedLoss(10, 1, 2), 0);
}

}  // namespace
}  // namespace falcon::rebalance
