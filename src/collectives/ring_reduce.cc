#include "collectives/algorithm.h"

namespace falcon::collectives {
namespace {

/// The rank behind the root in ring order starts; the root comes last.
void appendRingReduce(const Geometry& geometry, Range round, std::vector<Step>& steps) {
  const RingPosition position = ringPosition(geometry);
  const bool isRoot = geometry.rank == geometry.root;
  Step step;
  step.source = Where::input;
  step.destination = isRoot ? Where::output : Where::none;
  step.receiveFrom = position.previous == geometry.root ? -1 : position.previous;
  step.sendTo = isRoot ? -1 : position.next;
  step.last = isRoot;
  forEachChunk(round, geometry.chunk, [&](Range chunk) {
    step.sourceOffset = step.destinationOffset = chunk.begin;
    step.count = chunk.size();
    steps.push_back(step);
  });
}

}  // namespace

const Algorithm ringReduce{"ring", transport::Lane::ring, chainRound, appendRingReduce};

}  // namespace falcon::collectives
