// Layer normalisation with gain and bias, over the hidden dimension.
#pragma once

#include <vector>

#include "train/parameters.h"

namespace falcon::train {

/// What the backward pass needs of one forward pass.
template <class Real>
struct NormActivations {
  std::vector<Real> normalised;        ///< [rows][hidden], before gain and bias
  std::vector<Real> inverseDeviation;  ///< [rows]
  std::vector<Real> output;            ///< [rows][hidden]
};

template <class Real>
class LayerNorm {
 public:
  /// Tensors `key` and `key + 1`. The bucket outlives the layer.
  LayerNorm(ParameterBucket<Real>& bucket, std::uint64_t key, int hidden);

  /// The result is in activations.output.
  void forward(const Real* x, NormActivations<Real>& activations, int rows) const;

  /// Adds to the gradients of gain and bias, and to xGradient: that of the residual path beside the norm, or zeros.
  void backward(const NormActivations<Real>& activations, const Real* yGradient, Real* xGradient, int rows);

 private:
  ParameterBucket<Real>& bucket_;
  int hidden_;
  Parameter gain_;
  Parameter bias_;
};

}  // namespace falcon::train
