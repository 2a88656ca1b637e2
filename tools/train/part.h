// What one rank trains in one role: its stage's part of the model, with the optimisers.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "train/adam.h"
#include "train/communicators.h"
#include "train/options.h"
#include "train/pipeline.h"
#include "train/stage.h"

namespace falcon::train {

/// Used by one thread. All replicas of a role's place have the same state.
class Part {
 public:
  /// The communicators outlive it, and have to be those of the role when iterate() is called.
  Part(const Options& options, const RankParts& layout, Communicators& communicators);

  /// One iteration over these micro-batches, with the sum of gradients and the optimisers' steps. Returns the sum of
  /// the mean losses on the last stage, 0 on others.
  double iterate(const MicroBatchRange& share, const std::function<MicroBatch(int)>& batchAt);

  const RankParts& layout() const { return layout_; }
  /// Whether it speaks for its replica: it knows the loss.
  bool speaks() const { return stage_.last() && layout_.tensor.index == 0; }
  /// All that goes on from one iteration to the next, in memory that stays where it is.
  std::vector<NamedState> state();

 private:
  const Options& options_;
  const RankParts layout_;
  Communicators& communicators_;
  Stage<float> stage_;
  Pipeline<float> pipeline_;
  std::vector<Adam> optimisers_;  // one a bucket
};

}  // namespace falcon::train
