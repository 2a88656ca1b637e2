#include "rebalance/ski_rental.h"

#include <algorithm>

namespace falcon::rebalance {

const char* nameOf(Strategy strategy) {
  constexpr const char* names[] = {"ignore", "re-route", "re-split", "swap", "restart"};
  return names[static_cast<int>(strategy)];
}

double priceOf(Strategy strategy, double iterationSeconds) {
  switch (strategy) {
    case Strategy::ignore:
      return 0;
    case Strategy::reroute:
      return iterationSeconds;
    case Strategy::splitMicroBatches:
      return 2 * iterationSeconds;
    case Strategy::changeTopology:
      return 60;
    case Strategy::restart:
      return 600;
  }
  return 0;
}

double accumulatedLoss(std::int64_t slowIterations, double slowSeconds, double healthySeconds) {
  return std::max(0.0, static_cast<double>(slowIterations) * (slowSeconds - healthySeconds));
}

std::optional<Strategy> strategyDue(double lossSeconds, std::span<const PricedStrategy> possible) {
  const PricedStrategy* due = nullptr;
  for (const PricedStrategy& each : possible)
    if (lossSeconds >= each.priceSeconds && (!due || each.priceSeconds > due->priceSeconds)) due = &each;
  if (!due) return std::nullopt;
  return due->strategy;
}

}  // namespace falcon::rebalance
