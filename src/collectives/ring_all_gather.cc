#include "collectives/algorithm.h"

namespace falcon::collectives {
namespace {

/// Everyone starts with the chunk of its own block; then the blocks of those behind it come by, one a hop.
void appendRingAllGather(const Geometry& geometry, Range round, std::vector<Step>& steps) {
  const int size = geometry.size;
  const RingPosition position = ringPosition(geometry);
  for (int hop = 0; hop < size; ++hop) {
    const Rank owner = geometry.ring[(position.index - hop + size) % size];
    Step step;
    step.count = round.size();
    step.sourceOffset = round.begin;
    step.destination = Where::output;
    step.destinationOffset = geometry.placeOf(owner, round);
    if (hop == 0) step.source = Where::input;
    if (hop > 0) step.receiveFrom = position.previous;
    if (hop < size - 1) step.sendTo = position.next;
    appendChunks(step, geometry.chunk, steps);
  }
}

}  // namespace

const Algorithm ringAllGather{"ring", transport::Lane::ring, ringRound, appendRingAllGather};

}  // namespace falcon::collectives
