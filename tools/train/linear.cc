#include "train/linear.h"

#include "train/matrix.h"

namespace falcon::train {

template <class Real>
Linear<Real>::Linear(ParameterBucket<Real>& bucket, std::uint64_t key, int inputs, int outputs, Split split,
                     double deviation, int columnBlocks)
    : bucket_(bucket) {
  weight_ = bucket.add({key, inputs, outputs, split, columnBlocks, Initial::normal, deviation});
  const Split biasSplit = split == Split::columns ? Split::columns : Split::none;
  bias_ = bucket.add({key + 1, 1, outputs, biasSplit, columnBlocks, Initial::zeros, 0});
}

template <class Real>
void Linear<Real>::multiplyBy(const Real* x, Real* y, int rows) const {
  multiply(Matrix<const Real>(x, rows, inputs()), Form::plain,
           Matrix<const Real>(bucket_.value(weight_), inputs(), outputs()), Form::plain,
           Matrix<Real>(y, rows, outputs()));
}

template <class Real>
void Linear<Real>::addBias(Real* y, int rows) const {
  const Real* bias = bucket_.value(bias_);
  for (int row = 0; row < rows; ++row, y += outputs()) {
    for (int column = 0; column < outputs(); ++column) y[column] += bias[column];
  }
}

template <class Real>
void Linear<Real>::backward(const Real* x, const Real* yGradient, Real* xGradient, int rows) {
  const Matrix<const Real> output(yGradient, rows, outputs());
  multiply(Matrix<const Real>(x, rows, inputs()), Form::transposed, output, Form::plain,
           Matrix<Real>(bucket_.gradient(weight_), inputs(), outputs()), 1, 1);
  multiply(output, Form::plain, Matrix<const Real>(bucket_.value(weight_), inputs(), outputs()), Form::transposed,
           Matrix<Real>(xGradient, rows, inputs()));
  Real* biasGradient = bucket_.gradient(bias_);
  for (int row = 0; row < rows; ++row, yGradient += outputs()) {
    for (int column = 0; column < outputs(); ++column) biasGradient[column] += yGradient[column];
  }
}

template class Linear<float>;
template class Linear<double>;

}  // namespace falcon::train
