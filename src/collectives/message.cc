// Point-to-point messages and copies inside a rank, as algorithms like the others.
#include <limits>

#include "collectives/algorithm.h"

namespace falcon::collectives {
namespace {

// Only bounds the list of steps.
constexpr std::size_t chunksPerRound = 64;

std::size_t elementsPerRound(const Geometry& geometry) {
  return chunksPerRound * geometry.chunk;
}
std::size_t everything(const Geometry&) {
  return std::numeric_limits<std::size_t>::max();
}

void appendSends(const Geometry& geometry, Range round, std::vector<Step>& steps) {
  forEachChunk(round, geometry.chunk, [&](Range chunk) {
    steps.push_back(
        {.sendTo = geometry.root, .source = Where::input, .sourceOffset = chunk.begin, .count = chunk.size()});
  });
}

void appendReceives(const Geometry& geometry, Range round, std::vector<Step>& steps) {
  forEachChunk(round, geometry.chunk, [&](Range chunk) {
    steps.push_back({.receiveFrom = geometry.root,
                     .destination = Where::output,
                     .destinationOffset = chunk.begin,
                     .count = chunk.size()});
  });
}

void appendCopy(const Geometry&, Range round, std::vector<Step>& steps) {
  steps.push_back({.source = Where::input,
                   .destination = Where::output,
                   .last = true,
                   .sourceOffset = round.begin,
                   .destinationOffset = round.begin,
                   .count = round.size()});
}

}  // namespace

const Algorithm sendMessage{"send", transport::Lane::peerToPeer, elementsPerRound, appendSends};
const Algorithm receiveMessage{"receive", transport::Lane::peerToPeer, elementsPerRound, appendReceives};
const Algorithm localCopy{"copy", transport::Lane::peerToPeer, everything, appendCopy};

}  // namespace falcon::collectives
