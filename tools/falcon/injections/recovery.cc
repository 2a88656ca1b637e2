#include "injections/recovery.h"

#include <algorithm>
#include <stdexcept>

#include "base/median.h"
#include "rebalance/micro_batch_split.h"

namespace falcon::injections {
namespace {

constexpr double leastSlowdown = 0.03;  ///< of a healthy iteration; below it shares are of noise
constexpr std::size_t fewestIterations = 3;
constexpr double settling = 2;  ///< s

double interfaceBound(double factor, int members) {
  const double p = members, healthy = 2 * (p - 1) / p;
  const double least = std::max(factor, 2 * (p - 1) / (p - 1 + 1 / factor)) / healthy;
  return (factor - least) / (factor - 1);
}

double rankBound(double factor, const demo::JobShape& shape) {
  std::vector<rebalance::Replica> replicas(static_cast<std::size_t>(shape.dataParallel), {.secondsPerMicroBatch = 1});
  replicas.front().secondsPerMicroBatch = factor;
  const std::vector<int> equal = rebalance::equalSplit(shape.dataParallel, shape.microBatches);
  const auto best = rebalance::splitMicroBatches(replicas, {.total = shape.microBatches});
  if (!best) throw std::runtime_error(best.error().message());
  const double slow = rebalance::makespan(replicas, equal), least = rebalance::makespan(replicas, *best);
  replicas.front().secondsPerMicroBatch = 1;
  return (slow - least) / (slow - rebalance::makespan(replicas, equal));
}

/// Seconds; nothing: too few in that time.
std::optional<double> iterationIn(const std::vector<double>& ends, double from, double to) {
  std::vector<double> lengths = iterationsBetween(ends, from, to);
  return lengths.size() < fewestIterations ? std::nullopt : std::optional(median(std::move(lengths)));
}

}  // namespace

std::vector<double> iterationsBetween(const std::vector<double>& ends, double from, double to) {
  std::vector<double> lengths;
  for (std::size_t i = 1; i < ends.size(); ++i)
    if (ends[i - 1] >= from && ends[i] <= to) lengths.push_back(ends[i] - ends[i - 1]);
  return lengths;
}

std::optional<double> boundOf(const Cell& cell, const demo::JobShape& shape) {
  switch (cell.kind) {
    case CellKind::link:
    case CellKind::linkBothWays:
      return shape.dataParallel > 2 ? std::optional(1.0) : std::nullopt;
    case CellKind::interface:
      return interfaceBound(cell.factor, shape.dataParallel);
    case CellKind::rank:
      return rankBound(cell.factor, shape);
    case CellKind::contention:
    case CellKind::none:
      return std::nullopt;
  }
  return std::nullopt;
}

std::optional<double> recoveredIn(const Episode& episode, double healthySeconds) {
  double first = episode.relieved, last = 0;  // remedies
  for (const demo::Said& said : episode.said) {
    if (said.kind != "mitigation-applied" || said.time < episode.started || said.time > episode.relieved) continue;
    first = std::min(first, said.time);
    last = std::max(last, said.time);
  }
  const auto healthy = iterationIn(episode.iterationEnds, episode.started - healthySeconds, episode.started);
  const auto slow = iterationIn(episode.iterationEnds, episode.effective, first);
  if (!healthy || !slow || *slow < *healthy * (1 + leastSlowdown)) return std::nullopt;
  if (last == 0) return 0.0;
  const auto relieved = iterationIn(episode.iterationEnds, last + settling, episode.relieved);
  if (!relieved) return std::nullopt;
  return (*slow - *relieved) / (*slow - *healthy);
}

}  // namespace falcon::injections
