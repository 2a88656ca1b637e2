// Where a rank stands in the hybrid-parallel layout, and the equal split of micro-batches.
#pragma once

#include "train/model_shape.h"

namespace falcon::train {

/// rank = (data.index * pipeline.count + pipeline.index) * tensor.count + tensor.index
struct RankParts {
  Shard data;
  Shard pipeline;
  Shard tensor;
};

RankParts layoutOf(int rank, int dataParallel, int pipelineParallel, int tensorParallel);

/// Consecutive global micro-batches.
struct MicroBatchRange {
  int first = 0;
  int count = 0;
};

/// The equal split: shares differ by at most one, larger ones first.
MicroBatchRange equalShare(int microBatches, Shard replica);

}  // namespace falcon::train
