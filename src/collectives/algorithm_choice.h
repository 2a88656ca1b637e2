// Which algorithm a call uses, and over how many channels: data, so that it can be measured and replaced.
#pragma once

#include <cstddef>
#include <span>

#include "base/call.h"
#include "collectives/algorithm.h"
#include "collectives/algorithm_preference.h"
#include "collectives/direct_algorithm.h"

namespace falcon::collectives {

/// Where all ranks of a communicator are.
enum class Extent : std::uint8_t {
  node,    ///< on one node, where they share memory
  network  ///< elsewhere
};

/// One row of a table: a candidate for messages of [fromBytes, toBytes) among at least `fromRanks` ranks. The algorithm
/// may be null: over connections (of the direct ones), or as messages between all ranks (of the others).
template <class Candidate>
struct ChoiceRow {
  Operation operation;
  const Candidate* algorithm;
  std::size_t fromBytes;
  std::size_t toBytes;
  int fromRanks;
  double score;  ///< the highest wins
  bool onlyNetwork = false;
};
using AlgorithmRow = ChoiceRow<Algorithm>;
using DirectRow = ChoiceRow<DirectAlgorithm>;

std::span<const AlgorithmRow> algorithmTable();
/// For communicators inside one node.
std::span<const DirectRow> directTable();

struct Tuning;

/// Must give the same answer on all ranks: depends on nothing but its arguments. Null: as messages (AllToAll, Gather
/// and Scatter only). `preferred`: the algorithms to choose from (see PreferenceMasks), where the operation has any of
/// them; then at any size. `tuning`, where there is one, comes before the table.
const Algorithm* findAlgorithm(Operation operation, std::size_t bytes, int ranks,
                               std::uint8_t preferred = PreferenceMasks::everything, const Tuning* tuning = nullptr,
                               Extent extent = Extent::node);
/// The same for ring and tree operations, which always have one.
inline const Algorithm& chooseAlgorithm(Operation operation, std::size_t bytes, int ranks,
                                        std::uint8_t preferred = PreferenceMasks::everything,
                                        const Tuning* tuning = nullptr, Extent extent = Extent::node) {
  return *findAlgorithm(operation, bytes, ranks, preferred, tuning, extent);
}

/// The same for the direct algorithms; null where connections are better.
const DirectAlgorithm* chooseDirect(Operation operation, std::size_t bytes, int ranks, const Tuning* tuning = nullptr);

/// Channels that `bytes` are worth, within [fewest, most].
int chooseChannels(std::size_t bytes, int ranks, int fewest, int most, Extent extent);

}  // namespace falcon::collectives
