#include "train/head.h"

#include <algorithm>
#include <cmath>

#include "train/block.h"

namespace falcon::train {

template <class Real>
Head<Real>::Head(const ModelShape& shape, ParameterBucket<Real>& bucket)
    : shape_(shape),
      norm_(bucket, tensorKey(shape.layers, 0), shape.hidden),
      projection_(bucket, tensorKey(shape.layers, 2), shape.hidden, shape.vocabulary, Split::none,
                  0.3 * weightDeviation(shape.hidden)) {}  // small: it begins without opinions

template <class Real>
double Head<Real>::forward(const Real* x, const MicroBatch& batch, HeadActivations<Real>& activations) const {
  const int tokens = shape_.tokens();
  const int vocabulary = shape_.vocabulary;
  norm_.forward(x, activations.norm, tokens);
  activations.probabilities.resize(static_cast<std::size_t>(tokens) * vocabulary);
  Real* logits = activations.probabilities.data();
  projection_.multiplyBy(activations.norm.output.data(), logits, tokens);
  projection_.addBias(logits, tokens);

  double loss = 0;
  for (int i = 0; i < tokens; ++i, logits += vocabulary) {
    const Real largest = *std::max_element(logits, logits + vocabulary);
    const Real target = logits[batch.targets[i]] - largest;
    Real sum = 0;
    for (int j = 0; j < vocabulary; ++j) {
      logits[j] = std::exp(logits[j] - largest);
      sum += logits[j];
    }
    const Real inverse = 1 / sum;
    for (int j = 0; j < vocabulary; ++j) logits[j] *= inverse;
    loss += std::log(static_cast<double>(sum)) - static_cast<double>(target);
  }
  return loss / tokens;
}

template <class Real>
void Head<Real>::backward(const MicroBatch& batch, HeadActivations<Real>& activations, double scale, Real* gradient) {
  const int tokens = shape_.tokens();
  const std::size_t residual = static_cast<std::size_t>(tokens) * shape_.hidden;
  const Real perToken = static_cast<Real>(scale / tokens);
  Real* logitGradient = activations.probabilities.data();
  for (int i = 0; i < tokens; ++i) {
    Real* row = logitGradient + static_cast<std::size_t>(i) * shape_.vocabulary;
    row[batch.targets[i]] -= 1;
    for (int j = 0; j < shape_.vocabulary; ++j) row[j] *= perToken;
  }
  normGradient_.resize(residual);
  projection_.backward(activations.norm.output.data(), logitGradient, normGradient_.data(), tokens);
  std::fill(gradient, gradient + residual, Real{0});
  norm_.backward(activations.norm, normGradient_.data(), gradient, tokens);
}

template class Head<float>;
template class Head<double>;

}  // namespace falcon::train
