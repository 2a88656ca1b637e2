// The reductions among the direct algorithms.
#include "collectives/direct_algorithm.h"

namespace falcon::collectives {
namespace {

using Stage = transport::NodeBoard::Stage;

DirectStep reduceOf(std::size_t source, std::size_t destination, std::size_t count) {
  return {.kind = DirectStep::Kind::reduce, .source = source, .destination = destination, .count = count};
}

std::size_t whole(const DirectShape& shape) {
  return shape.count;
}
std::size_t allBlocks(const DirectShape& shape) {
  return shape.size * shape.count;
}
Readers everyone(const DirectShape&) {
  return Readers::everyone;
}
int one(const DirectShape&) {
  return 1;
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

bool isRoot(const DirectShape& shape) {
  return shape.rank == shape.root;
}

}  // namespace

const DirectAlgorithm directAllReduceFlat{"flat",
                                          whole,
                                          whole,
                                          everyone,
                                          Output::late,
                                          one,
                                          [](const DirectShape& shape, int) { return reduceOf(0, 0, shape.count); },
                                          false,
                                          true};

const DirectAlgorithm directAllReduceSegments{
    "segments",  whole, whole, everyone, Output::shared, [](const DirectShape& shape) { return shape.size; },
    segmentStep, false, true};

const DirectAlgorithm directReduceScatter{
    "direct", allBlocks, allBlocks, everyone, Output::own, one, [](const DirectShape& shape, int) {
      return reduceOf(shape.rank * shape.count, 0, shape.count);
    }};

const DirectAlgorithm directReduce{
    "direct",
    [](const DirectShape& shape) { return isRoot(shape) ? 0 : shape.count; },
    whole,
    [](const DirectShape& shape) { return isRoot(shape) ? Readers::nobody : Readers::root; },
    Output::own,
    [](const DirectShape& shape) { return isRoot(shape) ? 1 : 0; },
    [](const DirectShape& shape, int) { return reduceOf(0, 0, shape.count); },
    false,
    true};

}  // namespace falcon::collectives
