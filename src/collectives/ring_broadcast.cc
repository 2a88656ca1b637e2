#include "collectives/algorithm.h"

namespace falcon::collectives {
namespace {

void appendRingBroadcast(const Geometry& geometry, Range round, std::vector<Step>& steps) {
  const RingPosition position = ringPosition(geometry);
  const bool isRoot = geometry.rank == geometry.root;
  Step step;
  step.source = isRoot ? Where::input : Where::none;
  step.destination = Where::output;
  step.receiveFrom = isRoot ? -1 : position.previous;
  step.sendTo = position.next == geometry.root ? -1 : position.next;
  forEachChunk(round, geometry.chunk, [&](Range chunk) {
    step.sourceOffset = step.destinationOffset = chunk.begin;
    step.count = chunk.size();
    steps.push_back(step);
  });
}

}  // namespace

const Algorithm ringBroadcast{"ring", transport::Lane::ring, chainRound, appendRingBroadcast};

}  // namespace falcon::collectives
