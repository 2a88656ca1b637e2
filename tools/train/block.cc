#include "train/block.h"

#include <cmath>

namespace falcon::train {

namespace {

/// GELU in its tanh form, and its derivative. tanh comes from one exponential: libm's own is twice as slow.
template <class Real>
void gelu(const Real* x, Real* y, Real* slope, std::size_t count) {
  const Real scale = Real(0.7978845608028654);  // sqrt(2 / pi)
  const Real cubic = Real(0.044715);
  for (std::size_t i = 0; i < count; ++i) {
    const Real square = x[i] * x[i];
    const Real argument = scale * x[i] * (1 + cubic * square);
    const Real tangent = 1 - 2 / (std::exp(2 * argument) + 1);
    y[i] = Real(0.5) * x[i] * (1 + tangent);
    slope[i] =
        Real(0.5) * (1 + tangent) + Real(0.5) * x[i] * (1 - tangent * tangent) * scale * (1 + 3 * cubic * square);
  }
}

}  // namespace

double weightDeviation(int inputs) {
  return 1 / std::sqrt(static_cast<double>(inputs));
}
double residualDeviation(int inputs, int layers) {
  return weightDeviation(inputs) / std::sqrt(2.0 * layers);
}

template <class Real>
Block<Real>::Block(const ModelShape& shape, int layer, Shard shard, ParameterBucket<Real>& bucket,
                   Reducer<Real>& reducer)
    : shape_(shape),
      attention_{shape.microBatchSize, shape.sequence, shape.heads / shard.count, shape.headSize()},
      reducer_(reducer),
      attentionNorm_(bucket, tensorKey(layer, 0), shape.hidden),
      queryKeyValue_(bucket, tensorKey(layer, 2), shape.hidden, 3 * shape.hidden, Split::columns,
                     weightDeviation(shape.hidden), 3),
      attentionOutput_(bucket, tensorKey(layer, 4), shape.hidden, shape.hidden, Split::rows,
                       residualDeviation(shape.hidden, shape.layers)),
      mlpNorm_(bucket, tensorKey(layer, 6), shape.hidden),
      up_(bucket, tensorKey(layer, 8), shape.hidden, shape.inner(), Split::columns, weightDeviation(shape.hidden)),
      down_(bucket, tensorKey(layer, 10), shape.inner(), shape.hidden, Split::rows,
            residualDeviation(shape.inner(), shape.layers)) {}

template <class Real>
void Block<Real>::forward(Real* x, BlockActivations<Real>& activations, BlockScratch<Real>& scratch) const {
  const int tokens = shape_.tokens();
  const std::size_t residual = static_cast<std::size_t>(tokens) * shape_.hidden;
  scratch.narrow.resize(residual);
  Real* delta = scratch.narrow.data();
  const auto addReduced = [&](const Linear<Real>& projection) {
    reducer_.sum(delta, residual);
    projection.addBias(delta, tokens);
    for (std::size_t i = 0; i < residual; ++i) x[i] += delta[i];
  };

  attentionNorm_.forward(x, activations.attentionNorm, tokens);
  activations.qkv.resize(static_cast<std::size_t>(tokens) * queryKeyValue_.outputs());
  queryKeyValue_.multiplyBy(activations.attentionNorm.output.data(), activations.qkv.data(), tokens);
  queryKeyValue_.addBias(activations.qkv.data(), tokens);
  activations.attended.resize(static_cast<std::size_t>(tokens) * attention_.width());
  attend(attention_, activations.qkv.data(), activations.probabilities, activations.attended.data());
  attentionOutput_.multiplyBy(activations.attended.data(), delta, tokens);
  addReduced(attentionOutput_);

  mlpNorm_.forward(x, activations.mlpNorm, tokens);
  const std::size_t inner = static_cast<std::size_t>(tokens) * up_.outputs();
  scratch.wide.resize(inner);
  activations.activated.resize(inner);
  activations.slope.resize(inner);
  up_.multiplyBy(activations.mlpNorm.output.data(), scratch.wide.data(), tokens);
  up_.addBias(scratch.wide.data(), tokens);
  gelu(scratch.wide.data(), activations.activated.data(), activations.slope.data(), inner);
  down_.multiplyBy(activations.activated.data(), delta, tokens);
  addReduced(down_);
}

template <class Real>
void Block<Real>::backward(Real* gradient, const BlockActivations<Real>& activations, BlockScratch<Real>& scratch) {
  const int tokens = shape_.tokens();
  const std::size_t residual = static_cast<std::size_t>(tokens) * shape_.hidden;
  scratch.narrow.resize(residual);
  Real* normGradient = scratch.narrow.data();

  const std::size_t inner = static_cast<std::size_t>(tokens) * up_.outputs();
  scratch.wide.resize(inner);
  Real* innerGradient = scratch.wide.data();
  down_.backward(activations.activated.data(), gradient, innerGradient, tokens);
  for (std::size_t i = 0; i < inner; ++i) innerGradient[i] *= activations.slope[i];
  up_.backward(activations.mlpNorm.output.data(), innerGradient, normGradient, tokens);
  reducer_.sum(normGradient, residual);
  mlpNorm_.backward(activations.mlpNorm, normGradient, gradient, tokens);

  // The attended values' gradient uses the narrow buffer too: it is used up before the norm's gradient is set.
  scratch.wide.resize(static_cast<std::size_t>(tokens) * queryKeyValue_.outputs());
  attentionOutput_.backward(activations.attended.data(), gradient, normGradient, tokens);
  attendBackward(attention_, activations.qkv.data(), activations.probabilities, normGradient, scratch.wide.data(),
                 scratch.scores);
  queryKeyValue_.backward(activations.attentionNorm.output.data(), scratch.wide.data(), normGradient, tokens);
  reducer_.sum(normGradient, residual);
  attentionNorm_.backward(activations.attentionNorm, normGradient, gradient, tokens);
}

template class Block<float>;
template class Block<double>;

}  // namespace falcon::train
