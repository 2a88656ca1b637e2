#include "collectives/algorithm_choice.h"

#include <algorithm>
#include <limits>

#include "collectives/tuning.h"

namespace falcon::collectives {
namespace {

constexpr std::size_t noLimit = std::numeric_limits<std::size_t>::max();
// Each channel is a message more in every step, and one through sockets costs more: AllReduce of 256 KiB between 2
// ranks 86 us by one, 130 by two. Two ranks pass nothing on, so that a second one does not keep a core busy while the
// first waits: AllGather of 1 MiB 115 us by one, 155 by two, of 8 MiB the same by both.
constexpr std::size_t bytesPerChannel = 64 << 10, bytesPerSocketChannel = 512 << 10;
constexpr std::size_t bytesPerSocketChannelOfAPair = 4 << 20;

// A tree's 2 log n hops beat a ring's 2 (n - 1) until the bytes dominate. With 2 ranks both take two hops.
constexpr bool sockets = true;  // only where the ranks do not share memory
constexpr const Algorithm* messages = nullptr;
const AlgorithmRow table[] = {
    {Operation::allReduce, &ringAllReduce, 0, noLimit, 1, 1},
    {Operation::allReduce, &treeAllReduce, 0, 32 << 10, 3, 2},
    {Operation::allGather, &ringAllGather, 0, noLimit, 1, 1},
    {Operation::reduceScatter, &ringReduceScatter, 0, noLimit, 1, 1},
    {Operation::broadcast, &ringBroadcast, 0, noLimit, 1, 1},
    {Operation::reduce, &ringReduce, 0, noLimit, 1, 1},
    // Measured by sockets on 2 busy cores. Few hops while the bytes are few; where the ranks outnumber the cores, few
    // messages above all, which only a hub gives. It sends to all, one after the other: so not among very many.
    {Operation::allReduce, &doublingAllReduce, 0, 96 << 10, 2, 3, sockets},
    {Operation::allReduce, &doublingAllReduce, 0, 48 << 10, 3, 4, sockets},
    {Operation::allReduce, &exchangeAllReduce, 48 << 10, 384 << 10, 3, 4, sockets},
    {Operation::allReduce, &starAllReduce, 0, 160 << 10, 5, 5, sockets},
    {Operation::allReduce, &ringAllReduce, 160 << 10, noLimit, 5, 5, sockets},
    {Operation::allReduce, &doublingAllReduce, 0, 32 << 10, 17, 6, sockets},
    {Operation::allReduce, &ringAllReduce, 32 << 10, noLimit, 17, 6, sockets},
    {Operation::allGather, &doublingAllGather, 0, 128 << 10, 3, 2, sockets},
    {Operation::allGather, &starAllGather, 0, 96 << 10, 5, 3, sockets},
    {Operation::allGather, &exchangeAllGather, 192 << 10, 768 << 10, 5, 3, sockets},
    {Operation::allGather, &ringAllGather, 128 << 10, noLimit, 17, 4, sockets},
    {Operation::allGather, &doublingAllGather, 0, 128 << 10, 17, 4, sockets},
    {Operation::reduceScatter, &exchangeReduceScatter, 0, 384 << 10, 3, 2, sockets},
    {Operation::reduceScatter, &ringReduceScatter, 32 << 10, noLimit, 5, 3, sockets},
    {Operation::reduceScatter, &starReduceScatter, 0, 96 << 10, 5, 4, sockets},
    // An exchange connects everybody with everybody: not among many.
    {Operation::reduceScatter, &ringReduceScatter, 0, noLimit, 17, 5, sockets},
    {Operation::reduce, &starReduce, 0, 8 << 10, 3, 2, sockets},
    {Operation::reduce, &ringReduce, 0, noLimit, 17, 3, sockets},
    {Operation::allToAll, messages, 0, noLimit, 1, 1},
    {Operation::allToAll, &starAllToAll, 0, 8 << 10, 5, 2, sockets},
    {Operation::allToAll, messages, 0, noLimit, 17, 3, sockets},
    {Operation::gather, messages, 0, noLimit, 1, 1},
    {Operation::scatter, messages, 0, noLimit, 1, 1},
    {Operation::scatter, &binomialScatter, 0, 32 << 10, 4, 2, sockets},
};

// Null: over connections, in whose buffers the sender may leave its bytes and go on. Measured on 2 busy cores. Up to 16
// ranks the board has room for what ranks that share cores would else wait for each other with (docs/tuning.md);
// connections win where a root alone would read and reduce, or where blocks of all ranks are far larger than the
// caches: their chunks stay in them.
constexpr const DirectAlgorithm* connections = nullptr;
constexpr std::size_t small = (32 << 10) + 1;
const DirectRow direct[] = {
    // Flat, everyone reduces n times the bytes, but nobody waits twice; with 2 ranks nothing is read twice either.
    {Operation::allReduce, &directAllReduceFlat, 0, 512 << 10, 2, 1},
    {Operation::allReduce, &directAllReduceSegments, 512 << 10, 8 << 20, 2, 1},
    {Operation::allReduce, &directAllReduceSegments, 24 << 10, noLimit, 3, 2},
    {Operation::allReduce, &directAllReduceSegments, 4 << 10, 24 << 10, 17, 3},
    {Operation::allReduce, connections, small, 192 << 10, 17, 3},
    {Operation::allReduce, connections, 2 << 20, noLimit, 17, 3},
    {Operation::allGather, &directAllGather, 0, noLimit, 2, 1},
    {Operation::allGather, connections, (1 << 20) + 1, noLimit, 3, 2},
    {Operation::allGather, &directAllGather, 768 << 10, 8 << 20, 6, 3},
    {Operation::allGather, connections, 768 << 10, 8 << 20, 17, 4},
    {Operation::reduceScatter, &directReduceScatter, 0, noLimit, 2, 1},
    {Operation::reduceScatter, connections, 2 << 20, noLimit, 3, 2},
    {Operation::reduceScatter, connections, small, 192 << 10, 17, 2},
    {Operation::broadcast, &directBroadcast, 0, 512 << 10, 2, 1},
    {Operation::broadcast, &directBroadcast, 512 << 10, noLimit, 3, 1},
    {Operation::broadcast, connections, 8 << 20, noLimit, 17, 2},
    // The root alone would read and reduce; a chain uses all cores.
    {Operation::reduce, &directReduce, 0, small, 2, 1},
    {Operation::reduce, &directReduce, small, 2 << 20, 6, 1},
    {Operation::allToAll, &directAllToAll, 0, noLimit, 2, 1},
    {Operation::gather, &directGather, 0, noLimit, 2, 1},
    {Operation::scatter, &directScatter, 0, noLimit, 2, 1},
};

template <class Row>
const Row* bestRow(std::span<const Row> rows, Operation operation, std::size_t bytes, int ranks, Extent extent) {
  const Row* best = nullptr;
  for (const Row& row : rows) {
    const bool applies = row.operation == operation && row.fromBytes <= bytes && bytes < row.toBytes &&
                         row.fromRanks <= ranks && !(row.onlyNetwork && extent == Extent::node);
    if (applies && (!best || row.score > best->score)) best = &row;
  }
  return best;
}

/// The best of the preferred rows: one whose range fits, else any. Null where the operation has none of them.
const AlgorithmRow* choosePreferred(Operation operation, std::size_t bytes, int ranks, std::uint8_t preferred) {
  const AlgorithmRow* best = nullptr;
  bool bestFits = false;
  for (const AlgorithmRow& row : table) {
    if (row.operation != operation || !row.algorithm || (algorithmBit(row.algorithm->name) & preferred) == 0) continue;
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

const Algorithm* findAlgorithm(Operation operation, std::size_t bytes, int ranks, std::uint8_t preferred,
                               const Tuning* tuning, Extent extent) {
  if (preferred != PreferenceMasks::everything) [[unlikely]] {
    if (const AlgorithmRow* row = choosePreferred(operation, bytes, ranks, preferred)) return row->algorithm;
  }
  if (tuning) [[unlikely]] {
    if (const AlgorithmRow* row = bestRow<AlgorithmRow>(tuning->algorithms, operation, bytes, ranks, extent))
      return row->algorithm;
  }
  return bestRow(algorithmTable(), operation, bytes, ranks, extent)->algorithm;
}

std::span<const DirectRow> directTable() {
  return direct;
}

const DirectAlgorithm* chooseDirect(Operation operation, std::size_t bytes, int ranks, const Tuning* tuning) {
  if (tuning) [[unlikely]] {
    if (const DirectRow* row = bestRow<DirectRow>(tuning->direct, operation, bytes, ranks, Extent::node))
      return row->algorithm;
  }
  const DirectRow* best = bestRow(directTable(), operation, bytes, ranks, Extent::node);
  return best ? best->algorithm : nullptr;
}

int chooseChannels(std::size_t bytes, int ranks, int fewest, int most, Extent extent) {
  const std::size_t each = extent == Extent::node ? bytesPerChannel
                           : ranks > 2            ? bytesPerSocketChannel
                                                  : bytesPerSocketChannelOfAPair;
  const auto worth = static_cast<int>(std::min<std::size_t>(bytes / each, most));
  return std::clamp(worth, std::min(fewest, most), most);
}

}  // namespace falcon::collectives
