// What the star algorithms share: all ranks turn to one.
#pragma once

#include <vector>

#include "collectives/block_pieces.h"
#include "collectives/step.h"

namespace falcon::collectives {

inline constexpr Rank hub = 0;

/// `to` gets the round's elements of all blocks of this rank's input or output.
inline void appendSendOfBlocks(const Geometry& geometry, Range round, Rank to, Where source, std::vector<Step>& steps) {
  for (BlockPieces pieces(geometry, round, 0, geometry.size); !pieces.empty();) {
    const Range piece = pieces.next();
    steps.push_back({.sendTo = to, .source = source, .sourceOffset = piece.begin, .count = piece.size()});
  }
}

/// They come from `from`, into the output.
inline void appendReceiptOfBlocks(const Geometry& geometry, Range round, Rank from, std::vector<Step>& steps) {
  for (BlockPieces pieces(geometry, round, 0, geometry.size); !pieces.empty();) {
    const Range piece = pieces.next();
    steps.push_back(
        {.receiveFrom = from, .destination = Where::output, .destinationOffset = piece.begin, .count = piece.size()});
  }
}

}  // namespace falcon::collectives
