#include "collectives/algorithm.h"
#include "collectives/block_pieces.h"

namespace falcon::collectives {
namespace {

/// A rank's place in the binomial tree: ranks are counted from the root on, and who is `place`-th hands out the blocks
/// of the `blocks` ranks from itself on.
struct Branch {
  int place = 0;
  int reach = 1;  ///< a power of two: children are those at place + reach / 2, + reach / 4 ...
  int blocks = 1;
};

Branch branchAt(int place, int size) {
  int reach = 1;
  while (place == 0 ? reach < size : place % (2 * reach) == 0) reach *= 2;
  return {place, reach, std::min(reach, size - place)};
}

/// Each rank hands the farther half of what it has on, and of what is left again: the root sends log n messages instead
/// of n - 1, and the others the rest of them at the same time.
void appendBinomialScatter(const Geometry& geometry, Range round, std::vector<Step>& steps) {
  const int size = geometry.size;
  const auto rankAt = [&](int place) { return (geometry.root + place) % size; };
  const Branch own = branchAt((geometry.rank - geometry.root + size) % size, size);
  const bool isRoot = own.place == 0, isLeaf = own.blocks == 1;
  // What a rank hands on lies by place, its own block first.
  const auto keptAt = [&](int place) { return static_cast<std::size_t>(place - own.place) * round.size(); };
  if (!isRoot) {
    int place = own.place;
    for (BlockPieces pieces(geometry, round, geometry.rank, own.blocks); !pieces.empty();) {
      const Range piece = pieces.next();
      steps.push_back({.receiveFrom = rankAt(own.place - own.reach),
                       .destination = isLeaf ? Where::output : Where::scratch,
                       .destinationOffset = isLeaf ? round.begin : keptAt(place),
                       .count = piece.size()});
      place += static_cast<int>(piece.size() / round.size());
    }
  }
  for (int reach = own.reach / 2; reach > 0; reach /= 2) {
    int place = own.place + reach;
    if (place >= size) continue;
    const Rank child = rankAt(place);
    for (BlockPieces pieces(geometry, round, child, std::min(reach, size - place)); !pieces.empty();) {
      const Range piece = pieces.next();
      steps.push_back({.sendTo = child,
                       .source = isRoot ? Where::input : Where::scratch,
                       .sourceOffset = isRoot ? piece.begin : keptAt(place),
                       .count = piece.size()});
      place += static_cast<int>(piece.size() / round.size());
    }
  }
  if (isLeaf && !isRoot) return;
  steps.push_back({.source = isRoot ? Where::input : Where::scratch,
                   .destination = Where::output,
                   .sourceOffset = isRoot ? geometry.placeOf(geometry.rank, round) : 0,
                   .destinationOffset = round.begin,
                   .count = round.size()});
}

std::size_t binomialScatterScratch(const Geometry& geometry, std::size_t round) {
  return geometry.rank == geometry.root ? 0 : (geometry.size + 1) / 2 * round;
}

}  // namespace

const Algorithm binomialScatter{"binomial", transport::Lane::direct, chunkOfAllBlocks, appendBinomialScatter,
                                binomialScatterScratch};

}  // namespace falcon::collectives
