#include "collectives/algorithm_choice.h"

#include <algorithm>
#include <limits>

namespace falcon::collectives {
namespace {

constexpr std::size_t noLimit = std::numeric_limits<std::size_t>::max();
constexpr std::size_t bytesPerChannel = 64 << 10;

// A tree's 2 log n hops beat a ring's 2 (n - 1) until the bytes dominate. With 2 ranks both take two hops.
const AlgorithmRow table[] = {
    {Operation::allReduce, &ringAllReduce, 0, noLimit, 1, 1},
    {Operation::allReduce, &treeAllReduce, 0, 32 << 10, 3, 2},
    {Operation::allGather, &ringAllGather, 0, noLimit, 1, 1},
    {Operation::reduceScatter, &ringReduceScatter, 0, noLimit, 1, 1},
    {Operation::broadcast, &ringBroadcast, 0, noLimit, 1, 1},
    {Operation::reduce, &ringReduce, 0, noLimit, 1, 1},
};

/// The best of the preferred rows: one whose range fits, else any. Null where the operation has none of them.
const AlgorithmRow* choosePreferred(Operation operation, std::size_t bytes, int ranks, std::uint8_t preferred) {
  const AlgorithmRow* best = nullptr;
  bool bestFits = false;
  for (const AlgorithmRow& row : table) {
    if (row.operation != operation || (algorithmBit(row.algorithm->name) & preferred) == 0) continue;
    const bool fits = row.fromBytes <= bytes && bytes < row.toBytes && row.fromRanks <= ranks;
    if (best && (bestFits > fits || (bestFits == fits && best->score >= row.score))) continue;
    best = &row;
    bestFits = fits;
  }
  return best;
}

}  // namespace

std::span<const AlgorithmRow> algorithmTable() {
  return table;
}

const Algorithm& chooseAlgorithm(Operation operation, std::size_t bytes, int ranks, std::uint8_t preferred) {
  if (preferred != PreferenceMasks::everything) [[unlikely]] {
    if (const AlgorithmRow* row = choosePreferred(operation, bytes, ranks, preferred)) return *row->algorithm;
  }
  const AlgorithmRow* best = nullptr;
  for (const AlgorithmRow& row : table) {
    const bool applies =
        row.operation == operation && row.fromBytes <= bytes && bytes < row.toBytes && row.fromRanks <= ranks;
    if (applies && (!best || row.score > best->score)) best = &row;
  }
  return *best->algorithm;
}

int chooseChannels(std::size_t bytes, int fewest, int most) {
  const auto worth = static_cast<int>(std::min<std::size_t>(bytes / bytesPerChannel, most));
  return std::clamp(worth, std::min(fewest, most), most);
}

}  // namespace falcon::collectives
