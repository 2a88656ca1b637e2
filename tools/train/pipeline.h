// Runs one iteration's micro-batches through a stage, exchanging activations and gradients with its neighbours.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "train/stage.h"

namespace falcon::train {

/// Sends to one neighbouring stage and receives from another (or the same), both at once.
template <class Real>
class PipelineLink {
 public:
  virtual ~PipelineLink() = default;
  /// Stage -1: nothing to send, or to receive. Returns when both are complete; throws when they cannot be.
  virtual void exchange(int to, const Real* sent, int from, Real* received, std::size_t count) = 0;
  /// What the stage does from here on has this name, for those who watch the job.
  virtual void beginPhase(const char* name) { static_cast<void>(name); }
  virtual void endPhase() {}
};

template <class Real>
class Pipeline {
 public:
  /// Both outlive the pipeline.
  Pipeline(Stage<Real>& stage, Shard place, PipelineLink<Real>& link);

  /// Adds the gradients of scale * sum of the mean losses. `batchAt(i)` is called once for each of the replica's
  /// micro-batches; `bucketDone(i)` once for each of the stage's buckets, from the last to the first, as soon as its
  /// gradients are complete: while those of the other buckets are still computed. Returns the sum of the mean losses on
  /// the last stage, 0 on others.
  double run(int microBatches, double scale, const std::function<MicroBatch(int)>& batchAt,
             const std::function<void(std::size_t)>& bucketDone);

 private:
  Stage<Real>& stage_;
  Shard place_;
  PipelineLink<Real>& link_;
  /// Used in turn: while one step's output leaves, the next one's input arrives.
  std::vector<Real> buffers_[2];
  std::vector<MicroBatch> batches_;  // one a slot
};

}  // namespace falcon::train
