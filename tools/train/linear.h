// y = x W + b.
#pragma once

#include "train/parameters.h"

namespace falcon::train {

template <class Real>
class Linear {
 public:
  /// Tensors `key` and `key + 1`. The bucket outlives the layer. A weight split by columns has a bias split alike; one
  /// split by rows gives partial sums, to be reduced before the bias is added.
  Linear(ParameterBucket<Real>& bucket, std::uint64_t key, int inputs, int outputs, Split split, double deviation,
         int columnBlocks = 1);

  int inputs() const { return weight_.rows; }
  int outputs() const { return weight_.columns; }

  /// y[rows][outputs] = x[rows][inputs] W
  void multiplyBy(const Real* x, Real* y, int rows) const;
  void addBias(Real* y, int rows) const;

  /// Adds to the gradients of W and b, and sets xGradient[rows][inputs].
  void backward(const Real* x, const Real* yGradient, Real* xGradient, int rows);

 private:
  ParameterBucket<Real>& bucket_;
  Parameter weight_;
  Parameter bias_;
};

}  // namespace falcon::train
