#include "collectives/algorithm.h"
#include "collectives/star.h"

namespace falcon::collectives {
namespace {

/// All send to the root, which reduces: one hop, and nobody but the root waits.
void appendStarReduce(const Geometry& geometry, Range round, std::vector<Step>& steps) {
  if (geometry.size == 1) return localCopy.appendRound(geometry, round, steps);
  Step step{
      .source = Where::input, .sourceOffset = round.begin, .destinationOffset = round.begin, .count = round.size()};
  if (geometry.rank == geometry.root) return appendReduction(geometry, step, steps);
  step.sendTo = geometry.root;
  steps.push_back(step);
}

}  // namespace

const Algorithm starReduce{"star", transport::Lane::direct, oneChunk, appendStarReduce};

}  // namespace falcon::collectives
