// The direct algorithms that only move bytes.
#include "collectives/direct_algorithm.h"

namespace falcon::collectives {
namespace {

std::size_t wholeOfRoot(const DirectShape& shape) {
  return isRoot(shape) ? shape.count : 0;
}
std::size_t allBlocksOfRoot(const DirectShape& shape) {
  return isRoot(shape) ? allBlocks(shape) : 0;
}
std::size_t wholeOfOthers(const DirectShape& shape) {
  return isRoot(shape) ? 0 : shape.count;
}
Readers everyoneOfRoot(const DirectShape& shape) {
  return isRoot(shape) ? Readers::everyone : Readers::nobody;
}
Readers rootOfOthers(const DirectShape& shape) {
  return isRoot(shape) ? Readers::nobody : Readers::root;
}
int eachRank(const DirectShape& shape) {
  return shape.size;
}
int eachRankAtRoot(const DirectShape& shape) {
  return isRoot(shape) ? shape.size : 0;
}

/// The inverse of turnOf().
Rank peerOf(const DirectShape& shape, int index) {
  return (shape.rank + index) % shape.size;
}
DirectStep gatherStep(const DirectShape& shape, int index) {
  const Rank peer = peerOf(shape, index);
  return {.peer = peer, .destination = peer * shape.count, .count = shape.count};
}

}  // namespace

const DirectAlgorithm directBroadcast{
    .name = "direct",
    .posts = wholeOfRoot,
    .postsAtMost = whole,
    .readers = everyoneOfRoot,
    .output = Output::own,
    .steps = one,
    .step = [](const DirectShape& shape, int) { return DirectStep{.peer = shape.root, .count = shape.count}; },
    .divisible = true};

const DirectAlgorithm directAllGather{.name = "direct",
                                      .posts = whole,
                                      .postsAtMost = whole,
                                      .readers = everyone,
                                      .output = Output::own,
                                      .steps = eachRank,
                                      .step = gatherStep};

// Where all read from all, each waits for all the others anyhow, and one look at the end costs less than one at each
// turn (AlltoAll of 64 KiB among 8: 60 us instead of 75).
const DirectAlgorithm directGather{.name = "direct",
                                   .posts = wholeOfOthers,
                                   .postsAtMost = whole,
                                   .readers = rootOfOthers,
                                   .output = Output::own,
                                   .steps = eachRankAtRoot,
                                   .step = gatherStep,
                                   .inTurn = true};

const DirectAlgorithm directScatter{.name = "direct",
                                    .posts = allBlocksOfRoot,
                                    .postsAtMost = allBlocks,
                                    .readers = everyoneOfRoot,
                                    .output = Output::own,
                                    .steps = one,
                                    .step = [](const DirectShape& shape, int) {
                                      return DirectStep{
                                          .peer = shape.root, .source = shape.rank * shape.count, .count = shape.count};
                                    }};

const DirectAlgorithm directAllToAll{
    .name = "direct",
    .posts = allBlocks,
    .postsAtMost = allBlocks,
    .readers = everyone,
    .output = Output::own,
    .steps = eachRank,
    .step = [](const DirectShape& shape, int index) {
      const Rank peer = peerOf(shape, index);
      return DirectStep{
          .peer = peer, .source = shape.rank * shape.count, .destination = peer * shape.count, .count = shape.count};
    }};

}  // namespace falcon::collectives
