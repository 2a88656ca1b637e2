// A pre-norm transformer block: x += attention(norm(x)); x += mlp(norm(x)).
// Tensor parallel as in Megatron-LM (arXiv 1909.08053): a rank has a share of the heads and of the MLP's inner units;
// the second projection of each half gives partial sums, added up over the ranks forward, as is the input's gradient
// backward: four AllReduces a block and micro-batch.
#pragma once

#include <vector>

#include "train/attention.h"
#include "train/layer_norm.h"
#include "train/linear.h"
#include "train/reducer.h"

namespace falcon::train {

/// What the backward pass needs of one micro-batch's forward pass.
template <class Real>
struct BlockActivations {
  NormActivations<Real> attentionNorm;
  std::vector<Real> qkv;
  std::vector<Real> probabilities;
  std::vector<Real> attended;
  NormActivations<Real> mlpNorm;
  std::vector<Real> activated;  ///< GELU's result
  std::vector<Real> slope;      ///< and its derivative, taken where the exponential is at hand
};

/// Buffers that live within one call; shared by all blocks of a rank.
template <class Real>
struct BlockScratch {
  std::vector<Real> wide;
  std::vector<Real> narrow;
  std::vector<Real> scores;
};

template <class Real>
class Block {
 public:
  /// `layer` counts over the whole model. Bucket and reducer outlive the block.
  Block(const ModelShape& shape, int layer, Shard shard, ParameterBucket<Real>& bucket, Reducer<Real>& reducer);

  /// In place on x[tokens][hidden].
  void forward(Real* x, BlockActivations<Real>& activations, BlockScratch<Real>& scratch) const;

  /// Turns the gradient of the output into that of the input, in place, and adds to the parameters' gradients.
  void backward(Real* gradient, const BlockActivations<Real>& activations, BlockScratch<Real>& scratch);

 private:
  ModelShape shape_;
  AttentionShape attention_;
  Reducer<Real>& reducer_;
  LayerNorm<Real> attentionNorm_;
  Linear<Real> queryKeyValue_;
  Linear<Real> attentionOutput_;
  LayerNorm<Real> mlpNorm_;
  Linear<Real> up_;
  Linear<Real> down_;
};

/// Key of tensor `tensor` (0 to 15) of layer `layer`; the embedding is layer -1, the head is layer `layers`.
inline std::uint64_t tensorKey(int layer, int tensor) {
  return static_cast<std::uint64_t>(layer + 1) * 16 + tensor;
}

/// Deviation of initial weights; those that write to the residual stream are smaller in deeper models (as in GPT-2).
double weightDeviation(int inputs);
double residualDeviation(int inputs, int layers);

}  // namespace falcon::train
