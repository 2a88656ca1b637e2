#include "collectives/algorithm.h"

namespace falcon::collectives {
namespace {

/// Everyone sends each other its part of that one's block: one hop.
void appendExchangeReduceScatter(const Geometry& geometry, Range round, std::vector<Step>& steps) {
  const int size = geometry.size;
  const Rank self = geometry.rank;
  Step step;
  step.count = round.size();
  step.source = Where::input;
  // Starting with its neighbours, so that not all ranks turn to rank 0 first.
  for (int distance = 1; distance < size; ++distance) {
    step.sendTo = (self + distance) % size;
    step.sourceOffset = geometry.placeOf(step.sendTo, round);
    steps.push_back(step);
  }
  step.sendTo = -1;
  step.sourceOffset = geometry.placeOf(self, round);
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

const Algorithm exchangeReduceScatter{"exchange", transport::Lane::direct, oneChunk, appendExchangeReduceScatter};

}  // namespace falcon::collectives
