#include "collectives/algorithm.h"

namespace falcon::collectives {
namespace {

/// The block of the rank behind starts here; each hop adds this rank's part to a block further behind; the last is its
/// own.
void appendRingReduceScatter(const Geometry& geometry, Range round, std::vector<Step>& steps) {
  const int size = geometry.size;
  const RingPosition position = ringPosition(geometry);
  for (int hop = 0; hop < size; ++hop) {
    const Rank owner = geometry.ring[(position.index - 1 - hop + 2 * size) % size];
    const bool last = hop == size - 1;
    Step step;
    step.count = round.size();
    step.source = Where::input;
    step.sourceOffset = geometry.placeOf(owner, round);
    step.destinationOffset = round.begin;
    if (hop > 0) step.receiveFrom = position.previous;
    if (last) step.destination = Where::output;
    if (!last) step.sendTo = position.next;
    step.last = last;
    appendChunks(step, geometry.chunk, steps);
  }
}

}  // namespace

const Algorithm ringReduceScatter{"ring", transport::Lane::ring, ringRound, appendRingReduceScatter};

}  // namespace falcon::collectives
