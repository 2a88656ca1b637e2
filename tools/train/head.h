// Final norm, output projection and cross-entropy: the last thing of the last pipeline stage.
#pragma once

#include <vector>

#include "train/layer_norm.h"
#include "train/linear.h"
#include "train/micro_batch.h"

namespace falcon::train {

template <class Real>
struct HeadActivations {
  NormActivations<Real> norm;
  std::vector<Real> probabilities;  ///< [tokens][vocabulary]
};

template <class Real>
class Head {
 public:
  Head(const ModelShape& shape, ParameterBucket<Real>& bucket);

  /// The micro-batch's mean loss per token, in nats.
  double forward(const Real* x, const MicroBatch& batch, HeadActivations<Real>& activations) const;

  /// Sets gradient[tokens][hidden] to that of scale * mean loss. Uses the probabilities up.
  void backward(const MicroBatch& batch, HeadActivations<Real>& activations, double scale, Real* gradient);

 private:
  ModelShape shape_;
  LayerNorm<Real> norm_;
  Linear<Real> projection_;
  std::vector<Real> normGradient_;
};

}  // namespace falcon::train
