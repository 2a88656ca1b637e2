// The 1F1B pipeline schedule (PipeDream-Flush, Megatron-LM, arXiv 2104.04473) as a pure function.
#pragma once

#include <vector>

#include "train/model_shape.h"

namespace falcon::train {

struct PipelineStep {
  bool forward = true;
  int microBatch = 0;  ///< of this replica, from 0
  auto operator<=>(const PipelineStep&) const = default;
};

/// What a stage does, in order: some forwards to fill the pipeline, then one forward and one backward in turn, then the
/// remaining backwards. At most pipelineSlots() micro-batches are between their forward and their backward pass.
std::vector<PipelineStep> oneForwardOneBackward(Shard stage, int microBatches);

/// Sets of activations that a stage needs: micro-batch i may use slot i % slots.
inline int pipelineSlots(Shard stage) {
  return stage.count - stage.index;
}

/// The stage that a step's input comes from, and the one that its output goes to; -1: none.
int sourceOf(const PipelineStep& step, Shard stage);
int targetOf(const PipelineStep& step, Shard stage);

}  // namespace falcon::train
