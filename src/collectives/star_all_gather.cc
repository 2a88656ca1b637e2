#include "collectives/algorithm.h"
#include "collectives/star.h"

namespace falcon::collectives {
namespace {

/// All send to one, which sends everything to all: two hops, and as few messages as can be.
void appendStarAllGather(const Geometry& geometry, Range round, std::vector<Step>& steps) {
  const int size = geometry.size;
  const Rank self = geometry.rank;
  Step own;
  own.source = Where::input;
  own.sourceOffset = round.begin;
  own.destination = Where::output;
  own.destinationOffset = geometry.placeOf(self, round);
  own.count = round.size();
  if (self != hub) own.sendTo = hub;
  steps.push_back(own);
  if (self != hub) return appendReceiptOfBlocks(geometry, round, hub, steps);
  for (Rank peer = 1; peer < size; ++peer)
    steps.push_back({.receiveFrom = peer,
                     .destination = Where::output,
                     .destinationOffset = geometry.placeOf(peer, round),
                     .count = round.size()});
  for (Rank peer = 1; peer < size; ++peer) appendSendOfBlocks(geometry, round, peer, Where::output, steps);
}

}  // namespace

const Algorithm starAllGather{"star", transport::Lane::direct, oneChunk, appendStarAllGather};

}  // namespace falcon::collectives
