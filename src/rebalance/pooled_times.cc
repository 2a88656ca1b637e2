#include "rebalance/pooled_times.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numeric>

#include "base/median.h"

namespace falcon::rebalance {
namespace {

/// One pair of equals is so many standard errors of their difference apart once in 400 times.
constexpr double apart = 3;

/// Standard deviation of one measurement, as a share of its mean; infinite: nobody was measured twice.
double scatterOf(std::span<const std::vector<double>> measured) {
  double squares = 0, degrees = 0;
  for (const std::vector<double>& each : measured) {
    const double middle = mean(each);
    for (const double value : each) squares += (value / middle - 1) * (value / middle - 1);
    degrees += static_cast<double>(each.size() - 1);
  }
  if (degrees == 0) return std::numeric_limits<double>::infinity();
  // Few values know it badly: so three deviations leave out nearly what Student's distribution does.
  return std::sqrt(squares / degrees) * (1 + 2 / degrees);
}

/// How many standard errors the fastest and the slowest of so many equals may be apart. The chance that a pair is z
/// apart falls as exp(-z^2 / 2), and there are so many pairs.
double mostApart(std::size_t equals) {
  const auto count = static_cast<double>(equals);
  return std::sqrt(apart * apart + 2 * std::log(count * (count - 1) / 2));
}

}  // namespace

std::vector<double> pooledTimes(std::span<const std::vector<double>> measured) {
  std::vector<double> times;
  for (const std::vector<double>& each : measured) times.push_back(mean(each));
  std::vector<std::size_t> order(times.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, {}, [&](std::size_t i) { return times[i]; });

  const double scatter = scatterOf(measured);
  const auto countOf = [&](std::size_t i) { return static_cast<double>(measured[i].size()); };
  const auto areAlike = [&](std::size_t fastest, std::size_t slowest, std::size_t count) {
    const double error = scatter * std::sqrt(1 / countOf(fastest) + 1 / countOf(slowest));
    return std::log(times[slowest] / times[fastest]) <= mostApart(count) * error;
  };
  for (std::size_t first = 0, end = 0; first < order.size(); first = end) {
    double sum = 0, count = 0;
    do {
      sum += countOf(order[end]) * times[order[end]];
      count += countOf(order[end]);
      ++end;
    } while (end < order.size() && areAlike(order[first], order[end], end - first + 1));
    for (std::size_t i = first; i < end; ++i) times[order[i]] = sum / count;
  }
  return times;
}

}  // namespace falcon::rebalance
