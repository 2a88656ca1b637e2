#include "collectives/algorithm.h"
#include "collectives/star.h"

namespace falcon::collectives {
namespace {

void appendStarAllReduceHub(const Geometry& geometry, Step step, std::vector<Step>& steps) {
  appendReduction(geometry, step, steps);
  step.source = Where::output;
  for (step.sendTo = 1; step.sendTo < geometry.size; ++step.sendTo) steps.push_back(step);
}

/// All send to one, which reduces and sends the result to all: two hops, and as few messages as can be.
void appendStarAllReduce(const Geometry& geometry, Range round, std::vector<Step>& steps) {
  if (geometry.size == 1) return localCopy.appendRound(geometry, round, steps);
  Step step;
  step.count = round.size();
  step.sourceOffset = step.destinationOffset = round.begin;
  if (geometry.rank == hub) return appendStarAllReduceHub(geometry, step, steps);
  appendThereAndBack(hub, step, steps);
}

}  // namespace

const Algorithm starAllReduce{"star", transport::Lane::direct, oneChunk, appendStarAllReduce};

}  // namespace falcon::collectives
