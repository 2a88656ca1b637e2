// The reductions among the direct algorithms.
#include "collectives/direct_algorithm.h"

namespace falcon::collectives {
namespace {

using Stage = transport::NodeBoard::Stage;

DirectStep reduceOf(std::size_t source, std::size_t destination, std::size_t count) {
  return {.kind = DirectStep::Kind::reduce, .source = source, .destination = destination, .count = count};
}

Range segmentOf(const DirectShape& shape, Rank rank) {
  return partOf({0, shape.count}, shape.size, rank, shape.grain);
}

DirectStep segmentStep(const DirectShape& shape, int index) {
  // Beginning with its neighbour, so that not all ranks read from rank 0 first.
  const Rank owner = (shape.rank + index) % shape.size;
  const Range segment = segmentOf(shape, owner);
  if (index > 0)
    return {.peer = owner,
            .from = Stage::output,
            .source = segment.begin,
            .destination = segment.begin,
            .count = segment.size()};
  DirectStep step = reduceOf(segment.begin, segment.begin, segment.size());
  step.publish = true;
  return step;
}

}  // namespace

const DirectAlgorithm directAllReduceFlat{
    .name = "flat",
    .posts = whole,
    .postsAtMost = whole,
    .readers = everyone,
    .output = Output::late,
    .steps = one,
    .step = [](const DirectShape& shape, int) { return reduceOf(0, 0, shape.count); },
    .divisible = true};

const DirectAlgorithm directAllReduceSegments{.name = "segments",
                                              .posts = whole,
                                              .postsAtMost = whole,
                                              .readers = everyone,
                                              .output = Output::shared,
                                              .steps = [](const DirectShape& shape) { return shape.size; },
                                              .step = segmentStep,
                                              .divisible = true};

const DirectAlgorithm directReduceScatter{
    .name = "direct",
    .posts = allBlocks,
    .postsAtMost = allBlocks,
    .readers = everyone,
    .output = Output::own,
    .steps = one,
    .step = [](const DirectShape& shape, int) { return reduceOf(shape.rank * shape.count, 0, shape.count); }};

const DirectAlgorithm directReduce{
    .name = "direct",
    .posts = [](const DirectShape& shape) { return isRoot(shape) ? 0 : shape.count; },
    .postsAtMost = whole,
    .readers = [](const DirectShape& shape) { return isRoot(shape) ? Readers::nobody : Readers::root; },
    .output = Output::own,
    .steps = [](const DirectShape& shape) { return isRoot(shape) ? 1 : 0; },
    .step = [](const DirectShape& shape, int) { return reduceOf(0, 0, shape.count); },
    .divisible = true};

}  // namespace falcon::collectives
