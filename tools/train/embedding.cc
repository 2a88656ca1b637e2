#include "train/embedding.h"

#include "train/block.h"

namespace falcon::train {

template <class Real>
Embedding<Real>::Embedding(const ModelShape& shape, ParameterBucket<Real>& bucket) : shape_(shape), bucket_(bucket) {
  constexpr double deviation = 0.1;
  token_ = bucket.add({tensorKey(-1, 0), shape.vocabulary, shape.hidden, Split::none, 1, Initial::normal, deviation});
  position_ = bucket.add({tensorKey(-1, 1), shape.sequence, shape.hidden, Split::none, 1, Initial::normal, deviation});
}

template <class Real>
void Embedding<Real>::forward(const MicroBatch& batch, Real* x) const {
  for (int i = 0; i < shape_.tokens(); ++i, x += shape_.hidden) {
    const Real* token = bucket_.value(token_) + static_cast<std::size_t>(batch.inputs[i]) * shape_.hidden;
    const Real* position = bucket_.value(position_) + static_cast<std::size_t>(i % shape_.sequence) * shape_.hidden;
    for (int j = 0; j < shape_.hidden; ++j) x[j] = token[j] + position[j];
  }
}

template <class Real>
void Embedding<Real>::backward(const MicroBatch& batch, const Real* gradient) {
  for (int i = 0; i < shape_.tokens(); ++i, gradient += shape_.hidden) {
    Real* token = bucket_.gradient(token_) + static_cast<std::size_t>(batch.inputs[i]) * shape_.hidden;
    Real* position = bucket_.gradient(position_) + static_cast<std::size_t>(i % shape_.sequence) * shape_.hidden;
    for (int j = 0; j < shape_.hidden; ++j) {
      token[j] += gradient[j];
      position[j] += gradient[j];
    }
  }
}

template class Embedding<float>;
template class Embedding<double>;

}  // namespace falcon::train
