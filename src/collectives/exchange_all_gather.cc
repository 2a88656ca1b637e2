#include "collectives/algorithm.h"

namespace falcon::collectives {
namespace {

/// Everyone sends its block to all others: one hop.
void appendExchangeAllGather(const Geometry& geometry, Range round, std::vector<Step>& steps) {
  const int size = geometry.size;
  const Rank self = geometry.rank;
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
  step.destinationOffset = geometry.placeOf(self, round);
  steps.push_back(step);
  step.source = Where::none;
  for (int distance = 1; distance < size; ++distance) {
    step.receiveFrom = (self + size - distance) % size;
    step.destinationOffset = geometry.placeOf(step.receiveFrom, round);
    steps.push_back(step);
  }
}

}  // namespace

const Algorithm exchangeAllGather{"exchange", transport::Lane::direct, oneChunk, appendExchangeAllGather};

}  // namespace falcon::collectives
