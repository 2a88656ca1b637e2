// Several ranks' blocks of a buffer that has one for each, as pieces to send or receive.
#pragma once

#include <algorithm>
#include <cstddef>

#include "collectives/geometry.h"

namespace falcon::collectives {

/// A round's elements of `blocks` blocks from `first` on, in as few pieces as fit into a chunk: blocks that are covered
/// as a whole lie side by side.
class BlockPieces {
 public:
  BlockPieces(const Geometry& geometry, Range round, int first, int blocks)
      : geometry_(geometry), round_(round), first_(first), blocks_(blocks) {
    if (round.size() == geometry.count) together_ = std::min<std::size_t>(geometry.chunk / round.size(), geometry.size);
  }

  bool empty() const { return blocks_ == 0; }
  /// In all blocks of the buffer.
  Range next() {
    const int run = std::min({blocks_, static_cast<int>(together_), geometry_.size - first_});
    const std::size_t begin = geometry_.placeOf(first_, round_);
    blocks_ -= run;
    first_ = (first_ + run) % geometry_.size;
    return {begin, begin + static_cast<std::size_t>(run) * round_.size()};
  }

 private:
  const Geometry& geometry_;
  Range round_;
  int first_;
  int blocks_;
  std::size_t together_ = 1;
};

}  // namespace falcon::collectives
