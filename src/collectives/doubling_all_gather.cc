#include "collectives/algorithm.h"
#include "collectives/block_pieces.h"

namespace falcon::collectives {
namespace {

/// What a rank has doubles with each hop: its own block and those of the ranks before it. Any number of ranks: the last
/// hop passes on only what is missing.
void appendDoublingAllGather(const Geometry& geometry, Range round, std::vector<Step>& steps) {
  const int size = geometry.size;
  const Rank self = geometry.rank;
  steps.push_back({.source = Where::input,
                   .destination = Where::output,
                   .sourceOffset = round.begin,
                   .destinationOffset = geometry.placeOf(self, round),
                   .count = round.size()});
  for (int have = 1; have < size; have *= 2) {
    const Rank to = (self + have) % size;
    const Rank from = (self + size - have) % size;
    const int blocks = std::min(have, size - have);
    // The nearest ones: the receiver has those of the ranks in between.
    const auto firstOf = [&](Rank last) { return (last + 1 + size - blocks) % size; };
    BlockPieces sent(geometry, round, firstOf(self), blocks), received(geometry, round, firstOf(from), blocks);
    // By turns: who first sends all may wait for credit for ever.
    while (!sent.empty() || !received.empty()) {
      if (!sent.empty()) {
        const Range piece = sent.next();
        steps.push_back({.sendTo = to, .source = Where::output, .sourceOffset = piece.begin, .count = piece.size()});
      }
      if (!received.empty()) {
        const Range piece = received.next();
        steps.push_back({.receiveFrom = from,
                         .destination = Where::output,
                         .destinationOffset = piece.begin,
                         .count = piece.size()});
      }
    }
  }
}

}  // namespace

const Algorithm doublingAllGather{"doubling", transport::Lane::direct, oneChunk, appendDoublingAllGather};

}  // namespace falcon::collectives
