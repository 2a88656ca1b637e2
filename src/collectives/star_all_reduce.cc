#include "collectives/algorithm.h"
#include "collectives/star.h"

namespace falcon::collectives {
namespace {

void appendHub(int size, Step step, std::vector<Step>& steps) {
  step.source = Where::input;
  step.destination = Where::output;
  for (Rank peer = 1; peer < size; ++peer) {
    step.receiveFrom = peer;
    step.last = peer == size - 1;
    steps.push_back(step);
    step.source = Where::output;
  }
  step.receiveFrom = -1;
  step.last = false;
  step.destination = Where::none;
  for (step.sendTo = 1; step.sendTo < size; ++step.sendTo) steps.push_back(step);
}

/// All send to one, which reduces and sends the result to all: two hops, and as few messages as can be.
void appendRound(const Geometry& geometry, Range round, std::vector<Step>& steps) {
  if (geometry.size == 1) return localCopy.appendRound(geometry, round, steps);
  Step step;
  step.count = round.size();
  step.sourceOffset = step.destinationOffset = round.begin;
  if (geometry.rank == hub) return appendHub(geometry.size, step, steps);
  appendThereAndBack(hub, step, steps);
}

}  // namespace

const Algorithm starAllReduce{"star", transport::Lane::direct, oneChunk, appendRound};

}  // namespace falcon::collectives
