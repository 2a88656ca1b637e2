// Token and position embedding: the first thing of the first pipeline stage. Every tensor-parallel rank has all of it.
#pragma once

#include "train/micro_batch.h"
#include "train/parameters.h"

namespace falcon::train {

template <class Real>
class Embedding {
 public:
  Embedding(const ModelShape& shape, ParameterBucket<Real>& bucket);

  /// Sets x[tokens][hidden].
  void forward(const MicroBatch& batch, Real* x) const;
  void backward(const MicroBatch& batch, const Real* gradient);

 private:
  ModelShape shape_;
  ParameterBucket<Real>& bucket_;
  Parameter token_;
  Parameter position_;
};

}  // namespace falcon::train
