#include "train/layer_norm.h"

#include <cmath>

namespace falcon::train {

template <class Real>
LayerNorm<Real>::LayerNorm(ParameterBucket<Real>& bucket, std::uint64_t key, int hidden)
    : bucket_(bucket), hidden_(hidden) {
  gain_ = bucket.add({key, 1, hidden, Split::none, 1, Initial::ones, 0});
  bias_ = bucket.add({key + 1, 1, hidden, Split::none, 1, Initial::zeros, 0});
}

template <class Real>
void LayerNorm<Real>::forward(const Real* x, NormActivations<Real>& activations, int rows) const {
  const Real* gain = bucket_.value(gain_);
  const Real* bias = bucket_.value(bias_);
  activations.normalised.resize(static_cast<std::size_t>(rows) * hidden_);
  activations.output.resize(static_cast<std::size_t>(rows) * hidden_);
  activations.inverseDeviation.resize(rows);
  Real* normalised = activations.normalised.data();
  Real* y = activations.output.data();
  for (int row = 0; row < rows; ++row, x += hidden_, normalised += hidden_, y += hidden_) {
    Real mean = 0;
    for (int i = 0; i < hidden_; ++i) mean += x[i];
    mean /= hidden_;
    Real variance = 0;
    for (int i = 0; i < hidden_; ++i) variance += (x[i] - mean) * (x[i] - mean);
    const Real inverse = 1 / std::sqrt(variance / hidden_ + Real(1e-5));
    activations.inverseDeviation[row] = inverse;
    for (int i = 0; i < hidden_; ++i) {
      normalised[i] = (x[i] - mean) * inverse;
      y[i] = normalised[i] * gain[i] + bias[i];
    }
  }
}

template <class Real>
void LayerNorm<Real>::backward(const NormActivations<Real>& activations, const Real* yGradient, Real* xGradient,
                               int rows) {
  const Real* gain = bucket_.value(gain_);
  Real* gainGradient = bucket_.gradient(gain_);
  Real* biasGradient = bucket_.gradient(bias_);
  const Real* normalised = activations.normalised.data();
  for (int row = 0; row < rows; ++row, yGradient += hidden_, xGradient += hidden_, normalised += hidden_) {
    Real sum = 0;         // of the gradient of the normalised values
    Real projection = 0;  // of it on the normalised values
    for (int i = 0; i < hidden_; ++i) {
      const Real scaled = yGradient[i] * gain[i];
      sum += scaled;
      projection += scaled * normalised[i];
      gainGradient[i] += yGradient[i] * normalised[i];
      biasGradient[i] += yGradient[i];
    }
    sum /= hidden_;
    projection /= hidden_;
    const Real inverse = activations.inverseDeviation[row];
    for (int i = 0; i < hidden_; ++i) {
      xGradient[i] += (yGradient[i] * gain[i] - sum - normalised[i] * projection) * inverse;
    }
  }
}

template class LayerNorm<float>;
template class LayerNorm<double>;

}  // namespace falcon::train
