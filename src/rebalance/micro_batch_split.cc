#include "rebalance/micro_batch_split.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <queue>

namespace falcon::rebalance {

Result<std::vector<int>> splitMicroBatches(std::span<const double> secondsPerMicroBatch, int total) {
  const std::size_t replicas = secondsPerMicroBatch.size();
  if (replicas == 0) return Error::invalidArgument("there is no replica to give micro-batches to");
  if (total < static_cast<int>(replicas))
    return Error::invalidArgument("{} micro-batches cannot give each of {} replicas one", total, replicas);
  for (const double each : secondsPerMicroBatch)
    if (!(each > 0) || !std::isfinite(each))
      return Error::invalidArgument("a replica's time for one micro-batch is {} s; it must be positive", each);

  std::vector<int> microBatches(replicas, 1);
  using Candidate = std::pair<double, std::size_t>;  // when it would be done with one more; replica
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> next;
  for (std::size_t i = 0; i < replicas; ++i) next.emplace(2 * secondsPerMicroBatch[i], i);
  for (int left = total - static_cast<int>(replicas); left > 0; --left) {
    const std::size_t replica = next.top().second;
    next.pop();
    ++microBatches[replica];
    next.emplace(secondsPerMicroBatch[replica] * (microBatches[replica] + 1), replica);
  }
  return microBatches;
}

double makespan(std::span<const double> secondsPerMicroBatch, std::span<const int> microBatches) {
  double longest = 0;
  for (std::size_t i = 0; i < secondsPerMicroBatch.size(); ++i)
    longest = std::max(longest, secondsPerMicroBatch[i] * microBatches[i]);
  return longest;
}

std::vector<int> equalSplit(int replicas, int total) {
  std::vector<int> split(static_cast<std::size_t>(replicas), total / replicas);
  for (int i = 0; i < total % replicas; ++i) ++split[static_cast<std::size_t>(i)];
  return split;
}

}  // namespace falcon::rebalance
