#include "collectives/algorithm.h"
#include "collectives/star.h"

namespace falcon::collectives {
namespace {

/// Where the hub keeps the sums of the round's elements of all blocks.
std::size_t sumsAt(Rank owner, Range round) {
  return static_cast<std::size_t>(owner) * round.size();
}

void appendStarReduceScatterHub(const Geometry& geometry, Range round, std::vector<Step>& steps) {
  const int size = geometry.size;
  for (Rank peer = 1; peer < size; ++peer)
    for (BlockPieces pieces(geometry, round, 0, size); !pieces.empty();) {
      const Range piece = pieces.next();
      const std::size_t sums = sumsAt(static_cast<Rank>(piece.begin / geometry.count), round);
      const bool first = peer == 1;
      steps.push_back({.receiveFrom = peer,
                       .source = first ? Where::input : Where::scratch,
                       .destination = Where::scratch,
                       .last = peer == size - 1,
                       .sourceOffset = first ? piece.begin : sums,
                       .destinationOffset = sums,
                       .count = piece.size()});
    }
  for (Rank peer = 1; peer < size; ++peer)
    steps.push_back(
        {.sendTo = peer, .source = Where::scratch, .sourceOffset = sumsAt(peer, round), .count = round.size()});
  steps.push_back({.source = Where::scratch,
                   .destination = Where::output,
                   .sourceOffset = sumsAt(hub, round),
                   .destinationOffset = round.begin,
                   .count = round.size()});
}

/// All send everything to one, which reduces and sends each its block: two hops, and as few messages as can be.
void appendStarReduceScatter(const Geometry& geometry, Range round, std::vector<Step>& steps) {
  if (geometry.size == 1) return localCopy.appendRound(geometry, round, steps);
  if (geometry.rank == hub) return appendStarReduceScatterHub(geometry, round, steps);
  appendSendOfBlocks(geometry, round, hub, Where::input, steps);
  steps.push_back(
      {.receiveFrom = hub, .destination = Where::output, .destinationOffset = round.begin, .count = round.size()});
}

std::size_t starReduceScatterScratch(const Geometry& geometry, std::size_t round) {
  return geometry.rank == hub ? geometry.size * round : 0;
}

}  // namespace

const Algorithm starReduceScatter{"star", transport::Lane::direct, chunkOfAllBlocks, appendStarReduceScatter,
                                  starReduceScatterScratch};

}  // namespace falcon::collectives
