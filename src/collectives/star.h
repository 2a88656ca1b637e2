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

/// This rank's input of `step`'s range with that of all others, into its output.
inline void appendReduction(const Geometry& geometry, Step step, std::vector<Step>& steps) {
  step.source = Where::input;
  step.destination = Where::output;
  for (int distance = 1; distance < geometry.size; ++distance) {
    step.receiveFrom = (geometry.rank + distance) % geometry.size;
    step.last = distance == geometry.size - 1;
    steps.push_back(step);
    step.source = Where::output;
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
