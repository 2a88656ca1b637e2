#include "rebalance/ski_rental.h"

#include <algorithm>
#include <limits>
#include <utility>

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

double costOf(std::span<const Remedy> ladder, std::span<const double> lossAt, double duration) {
  double loss = 0, bought = 0, left = duration, rate = 1;
  for (std::size_t i = 0; i < ladder.size() && rate > 0; ++i) {
    const double until = std::max(0.0, lossAt[i] - loss) / rate;
    if (until > left) break;
    loss += until * rate;
    left -= until;
    bought += ladder[i].priceSeconds;
    rate = ladder[i].remaining;
  }
  return loss + left * rate + bought;
}

double leastCostOf(std::span<const Remedy> ladder, double duration) {
  double least = duration;
  for (const Remedy& each : ladder) least = std::min(least, each.priceSeconds + each.remaining * duration);
  return least;
}

std::vector<double> thresholdsOf(std::span<const Remedy> ladder) {
  std::vector<double> thresholds;
  for (const Remedy& each : ladder) thresholds.push_back(each.priceSeconds);
  return thresholds;
}

double competitiveBound(std::span<const Remedy> ladder) {
  double worst = 0, sum = 0;
  for (const Remedy& each : ladder) {
    sum += each.priceSeconds;
    worst = std::max(worst, sum / each.priceSeconds);
  }
  return 1 + worst;
}

std::vector<double> thresholdsFor(std::span<const Remedy> ladder, std::span<const double> durations, double trust) {
  constexpr int steps = 32, rounds = 4;
  std::vector<double> thresholds = thresholdsOf(ladder);
  if (durations.empty()) return thresholds;
  const auto meanCost = [&] {
    double sum = 0;
    for (const double duration : durations) sum += costOf(ladder, thresholds, duration);
    return sum / static_cast<double>(durations.size());
  };
  double least = meanCost();
  for (int round = 0; round < rounds; ++round)
    for (std::size_t i = 0; i < thresholds.size(); ++i) {
      const double price = ladder[i].priceSeconds;
      const double from = std::max(trust * price, i > 0 ? thresholds[i - 1] : 0.0);
      const double to = std::min(
          price / trust, i + 1 < thresholds.size() ? thresholds[i + 1] : std::numeric_limits<double>::infinity());
      double best = thresholds[i];
      for (int step = 0; step <= steps; ++step) {
        thresholds[i] = from + (to - from) * step / steps;
        if (const double cost = meanCost(); cost < least) least = cost, best = thresholds[i];
      }
      thresholds[i] = best;
    }
  return thresholds;
}

double Prices::of(Strategy strategy, double iterationSeconds, std::optional<double> estimate) const {
  const bool isNearlyFree = strategy == Strategy::reroute || strategy == Strategy::splitMicroBatches;
  if (const auto found = measured_.find(strategy); found != measured_.end())
    return isNearlyFree ? std::max(found->second, priceOf(strategy, iterationSeconds)) : found->second;
  return estimate.value_or(priceOf(strategy, iterationSeconds));
}

void Prices::took(Strategy strategy, double seconds, double iterationSeconds, std::optional<double> estimate) {
  measured_[strategy] = (of(strategy, iterationSeconds, estimate) + std::max(0.0, seconds)) / 2;
}

void CoolDown::undone(Nanoseconds now, double priceSeconds) {
  const auto applied = std::exchange(applied_, std::nullopt);
  if (!applied) return;
  if (now - *applied >= fromSeconds(paysIn * priceSeconds)) {
    pause_ = Nanoseconds(0);
    return;
  }
  pause_ = std::clamp(2 * pause_, shortest, longest);
  until_ = now + pause_;
}

}  // namespace falcon::rebalance
