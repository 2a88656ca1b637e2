#include "collectives/algorithm.h"
#include "collectives/star.h"

namespace falcon::collectives {
namespace {

/// The hub keeps the round's elements of all blocks twice: as they come, by sender, and as they go, by receiver.
struct Tables {
  std::size_t size;
  std::size_t block;
  std::size_t bySender(Rank from, Rank to) const { return (from * size + to) * block; }
  std::size_t byReceiver(Rank to, Rank from) const { return (size * size + to * size + from) * block; }
};

void appendStarAllToAllHub(const Geometry& geometry, Range round, std::vector<Step>& steps) {
  const int size = geometry.size;
  const Tables tables{static_cast<std::size_t>(size), round.size()};
  const auto blockOf = [&](Range piece) { return static_cast<Rank>(piece.begin / geometry.count); };
  for (Rank peer = 1; peer < size; ++peer)
    for (BlockPieces pieces(geometry, round, 0, size); !pieces.empty();) {
      const Range piece = pieces.next();
      steps.push_back({.receiveFrom = peer,
                       .destination = Where::scratch,
                       .destinationOffset = tables.bySender(peer, blockOf(piece)),
                       .count = piece.size()});
    }
  for (Rank to = 0; to < size; ++to)
    for (Rank from = 0; from < size; ++from)
      steps.push_back({.source = from == hub ? Where::input : Where::scratch,
                       .destination = to == hub ? Where::output : Where::scratch,
                       .sourceOffset = from == hub ? geometry.placeOf(to, round) : tables.bySender(from, to),
                       .destinationOffset = to == hub ? geometry.placeOf(from, round) : tables.byReceiver(to, from),
                       .count = round.size()});
  for (Rank peer = 1; peer < size; ++peer)
    for (BlockPieces pieces(geometry, round, 0, size); !pieces.empty();) {
      const Range piece = pieces.next();
      steps.push_back({.sendTo = peer,
                       .source = Where::scratch,
                       .sourceOffset = tables.byReceiver(peer, blockOf(piece)),
                       .count = piece.size()});
    }
}

/// All send everything to one, which sorts it and sends each what is for it: two hops, and as few messages as can be.
void appendStarAllToAll(const Geometry& geometry, Range round, std::vector<Step>& steps) {
  if (geometry.size == 1) return localCopy.appendRound(geometry, round, steps);
  if (geometry.rank == hub) return appendStarAllToAllHub(geometry, round, steps);
  appendSendOfBlocks(geometry, round, hub, Where::input, steps);
  appendReceiptOfBlocks(geometry, round, hub, steps);
}

std::size_t starAllToAllScratch(const Geometry& geometry, std::size_t round) {
  return geometry.rank == hub ? 2 * geometry.size * geometry.size * round : 0;
}

}  // namespace

const Algorithm starAllToAll{"star", transport::Lane::direct, chunkOfAllBlocks, appendStarAllToAll,
                             starAllToAllScratch};

}  // namespace falcon::collectives
