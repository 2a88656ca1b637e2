#include "collectives/algorithm.h"

namespace falcon::collectives {
namespace {

std::size_t ringAllReducePerRound(const Geometry& geometry) {
  return static_cast<std::size_t>(geometry.size) * ringRound(geometry);
}

/// A round has one part a rank. Part p starts at position p, is complete after n - 1 hops, and goes round once more.
void appendRingAllReduce(const Geometry& geometry, Range round, std::vector<Step>& steps) {
  const int size = geometry.size;
  if (size == 1) return localCopy.appendRound(geometry, round, steps);
  const RingPosition position = ringPosition(geometry);
  // Whole chunks where there are enough elements: borders rounded up to the grain must not exceed a chunk.
  const std::size_t grain = geometry.chunk % geometry.grain == 0 ? geometry.grain : 1;
  for (int hop = 0; hop <= 2 * size - 2; ++hop) {
    const Range part = partOf(round, size, (position.index - hop + 2 * size) % size, grain);
    if (part.empty()) continue;
    Step step;
    step.count = part.size();
    step.sourceOffset = step.destinationOffset = part.begin;
    if (hop > 0) step.receiveFrom = position.previous;
    if (hop < 2 * size - 2) step.sendTo = position.next;
    if (hop <= size - 1) step.source = Where::input;
    if (hop >= size - 1) step.destination = Where::output;
    step.last = hop == size - 1;
    appendChunks(step, geometry.chunk, steps);
  }
}

}  // namespace

const Algorithm ringAllReduce{"ring", transport::Lane::ring, ringAllReducePerRound, appendRingAllReduce};

}  // namespace falcon::collectives
