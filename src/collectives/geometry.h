// How elements are divided: over channels, rounds, parts of a ring, and chunks. All ranks compute the same borders.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>

#include "base/types.h"

namespace falcon::collectives {

/// What parts should not share.
inline constexpr std::size_t cacheLine = 64;

/// Elements [begin, end).
struct Range {
  std::size_t begin = 0;
  std::size_t end = 0;
  constexpr std::size_t size() const { return end - begin; }
  constexpr bool empty() const { return begin == end; }
};

/// Part `index` of `parts` nearly equal parts. Inner borders are multiples of `grain` elements from the start, so that
/// small ranges have empty parts at the end rather than parts that share a cache line.
constexpr Range partOf(Range whole, std::size_t parts, std::size_t index, std::size_t grain) {
  const std::size_t units = whole.size() / grain + (whole.size() % grain != 0 ? 1 : 0);
  const auto border = [&](std::size_t part) {
    const std::size_t unit = part * (units / parts) + std::min(part, units % parts);
    return whole.begin + std::min(unit * grain, whole.size());
  };
  return {border(index), border(index + 1)};
}

/// Calls `visit` with each piece of at most `chunk` elements, in order.
template <class Visit>
constexpr void forEachChunk(Range range, std::size_t chunk, Visit visit) {
  for (std::size_t begin = range.begin; begin < range.end;) {
    const std::size_t end = begin + std::min(chunk, range.end - begin);
    visit(Range{begin, end});
    begin = end;
  }
}

/// What an algorithm must know about one channel of one collective.
struct Geometry {
  Rank rank = 0;
  int size = 1;
  std::span<const Rank> ring;  ///< all ranks in ring order
  Rank root = -1;              ///< of calls that have one; the peer of a message
  std::size_t count = 0;       ///< as in Call: the distance between blocks where a buffer has one for each rank
  std::size_t chunk = 1;       ///< most elements of one step
  std::size_t grain = 1;       ///< see partOf()
  int channel = 0;

  /// Where `round`'s elements of a rank's block are in a buffer of all blocks.
  constexpr std::size_t placeOf(Rank owner, Range round) const {
    return static_cast<std::size_t>(owner) * count + round.begin;
  }
};

/// Elements of a ring's round for each of its parts. In a ring of two nobody passes anything on: several chunks are
/// sent before the other's first is waited for, so that they leave together. No more than a connection holds.
constexpr std::size_t ringRound(const Geometry& geometry) {
  return (geometry.size == 2 ? 4 : 1) * geometry.chunk;
}

/// Elements of a round of what goes down a chain of ranks chunk by chunk; only bounds the list of steps.
constexpr std::size_t chainRound(const Geometry& geometry) {
  return 64 * geometry.chunk;
}

/// Where this rank stands in the ring.
struct RingPosition {
  int index = 0;
  Rank next = 0;
  Rank previous = 0;
};

inline RingPosition ringPosition(const Geometry& geometry) {
  const auto& ring = geometry.ring;
  const int size = geometry.size;
  const auto index = static_cast<int>(std::find(ring.begin(), ring.end(), geometry.rank) - ring.begin());
  return {index, ring[(index + 1) % size], ring[(index + size - 1) % size]};
}

}  // namespace falcon::collectives
