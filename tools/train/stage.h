// One rank's part of the model: the layers of its pipeline stage, its tensor-parallel share of each.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "train/block.h"
#include "train/embedding.h"
#include "train/head.h"

namespace falcon::train {

/// Used by one thread. A slot holds the activations of one micro-batch between its forward and its backward pass.
template <class Real>
class Stage {
 public:
  /// `pipeline` says which stage of how many; stages differ by at most one layer. The reducer outlives the stage.
  Stage(const ModelShape& shape, std::uint64_t seed, Shard pipeline, Shard tensor, int slots, Reducer<Real>& reducer);

  bool last() const { return head_.has_value(); }
  int slots() const { return static_cast<int>(slots_.size()); }
  /// Elements of what stages hand to each other: [tokens][hidden].
  std::size_t activationCount() const { return static_cast<std::size_t>(shape_.tokens()) * shape_.hidden; }

  /// In place on x; the first stage sets it from the tokens. The last stage returns the mean loss, others 0.
  double forward(int slot, const MicroBatch& batch, Real* x);

  /// In place: gradient of the output into gradient of the input; the last stage starts from scale * mean loss.
  /// `bucketDone(i)` is called for each of buckets(), from the last to the first, when nothing is added to it any more.
  void backward(
      int slot, const MicroBatch& batch, double scale, Real* gradient,
      const std::function<void(std::size_t)>& bucketDone = [](std::size_t) {});

  /// In the order of the forward pass: embedding, blocks, head, as far as this stage has them.
  std::deque<ParameterBucket<Real>>& buckets() { return buckets_; }
  std::size_t parameterCount() const;

 private:
  struct Slot {
    std::vector<BlockActivations<Real>> blocks;
    HeadActivations<Real> head;
  };

  ModelShape shape_;
  std::deque<ParameterBucket<Real>> buckets_;  // a deque: layers keep references
  std::optional<Embedding<Real>> embedding_;
  std::vector<std::unique_ptr<Block<Real>>> blocks_;
  std::optional<Head<Real>> head_;
  std::vector<Slot> slots_;
  BlockScratch<Real> scratch_;
};

}  // namespace falcon::train
