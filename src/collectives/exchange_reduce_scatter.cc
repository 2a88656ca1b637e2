#include "collectives/algorithm.h"

namespace falcon::collectives {
namespace {

std::size_t elementsPerRound(const Geometry& geometry) {
  return geometry.chunk;
}

/// Everyone sends each other its part of that one's block: one hop.
void appendRound(const Geometry& geometry, Range round, std::vector<Step>& steps) {
  const int size = geometry.size;
  const Rank self = geometry.rank;
  const auto placeOf = [&](Rank owner) { return static_cast<std::size_t>(owner) * geometry.count + round.begin; };
  Step step;
  step.count = round.size();
  step.source = Where::input;
  // Starting with its neighbours, so that not all ranks turn to rank 0 first.
  for (int distance = 1; distance < size; ++distance) {
    step.sendTo = (self + distance) % size;
    step.sourceOffset = placeOf(step.sendTo);
    steps.push_back(step);
  }
  step.sendTo = -1;
  step.sourceOffset = placeOf(self);
  step.destination = Where::output;
  step.destinationOffset = round.begin;
  step.last = size == 1;
  if (size == 1) steps.push_back(step);
  for (int distance = 1; distance < size; ++distance) {
    step.receiveFrom = (self + size - distance) % size;
    step.last = distance == size - 1;
    steps.push_back(step);
    step.source = Where::output;
    step.sourceOffset = round.begin;
  }
}

}  // namespace

const Algorithm exchangeReduceScatter{"exchange", transport::Lane::direct, elementsPerRound, appendRound};

}  // namespace falcon::collectives
