#include "collectives/algorithm.h"

namespace falcon::collectives {
namespace {

std::size_t elementsPerRound(const Geometry& geometry) {
  return geometry.chunk;
}

/// Everyone sends its block to all others: one hop.
void appendRound(const Geometry& geometry, Range round, std::vector<Step>& steps) {
  const int size = geometry.size;
  const Rank self = geometry.rank;
  const auto placeOf = [&](Rank owner) { return static_cast<std::size_t>(owner) * geometry.count + round.begin; };
  Step step;
  step.count = round.size();
  step.source = Where::input;
  step.sourceOffset = round.begin;
  // Starting with its neighbours, so that not all ranks turn to rank 0 first.
  for (int distance = 1; distance < size; ++distance) {
    step.sendTo = (self + distance) % size;
    steps.push_back(step);
  }
  step.sendTo = -1;
  step.destination = Where::output;
  step.destinationOffset = placeOf(self);
  steps.push_back(step);
  step.source = Where::none;
  for (int distance = 1; distance < size; ++distance) {
    step.receiveFrom = (self + size - distance) % size;
    step.destinationOffset = placeOf(step.receiveFrom);
    steps.push_back(step);
  }
}

}  // namespace

const Algorithm exchangeAllGather{"exchange", transport::Lane::direct, elementsPerRound, appendRound};

}  // namespace falcon::collectives
