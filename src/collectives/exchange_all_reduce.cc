#include "collectives/algorithm.h"

namespace falcon::collectives {
namespace {

std::size_t exchangeAllReducePerRound(const Geometry& geometry) {
  return static_cast<std::size_t>(geometry.size) * geometry.chunk;
}

/// Everyone reduces a part of it, to which all others send theirs, and sends the result to all: two hops.
void appendExchangeAllReduce(const Geometry& geometry, Range round, std::vector<Step>& steps) {
  const int size = geometry.size;
  const Rank self = geometry.rank;
  if (size == 1) return localCopy.appendRound(geometry, round, steps);
  // Whole chunks where there are enough elements: borders rounded up to the grain must not exceed a chunk.
  const std::size_t grain = geometry.chunk % geometry.grain == 0 ? geometry.grain : 1;
  const auto stepOn = [&](Rank owner) {
    const Range part = partOf(round, size, owner, grain);
    Step step;
    step.count = part.size();
    step.sourceOffset = step.destinationOffset = part.begin;
    return step;
  };
  // Starting with its neighbours, so that not all ranks turn to rank 0 first.
  const auto append = [&](Step step) {
    if (step.count > 0) steps.push_back(step);
  };
  for (int distance = 1; distance < size; ++distance) {
    const Rank peer = (self + distance) % size;
    Step step = stepOn(peer);
    step.source = Where::input;
    step.sendTo = peer;
    append(step);
  }
  Step own = stepOn(self);
  own.source = Where::input;
  own.destination = Where::output;
  for (int distance = 1; distance < size; ++distance) {
    own.receiveFrom = (self + size - distance) % size;
    own.last = distance == size - 1;
    append(own);
    own.source = Where::output;
  }
  own.receiveFrom = -1;
  own.last = false;
  own.destination = Where::none;
  for (int distance = 1; distance < size; ++distance) {
    own.sendTo = (self + distance) % size;
    append(own);
  }
  for (int distance = 1; distance < size; ++distance) {
    const Rank peer = (self + size - distance) % size;
    Step step = stepOn(peer);
    step.receiveFrom = peer;
    step.destination = Where::output;
    append(step);
  }
}

}  // namespace

const Algorithm exchangeAllReduce{"exchange", transport::Lane::direct, exchangeAllReducePerRound,
                                  appendExchangeAllReduce};

}  // namespace falcon::collectives
