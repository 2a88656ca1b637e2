#include "train/attention.h"

#include <algorithm>
#include <cmath>

#include "train/matrix.h"

namespace falcon::train {

namespace {

/// Softmax of row i over its columns 0..i; the future gets probability 0.
template <class Real>
void causalSoftmax(Real* scores, int length) {
  for (int row = 0; row < length; ++row, scores += length) {
    const Real largest = *std::max_element(scores, scores + row + 1);
    Real sum = 0;
    for (int column = 0; column <= row; ++column) {
      scores[column] = std::exp(scores[column] - largest);
      sum += scores[column];
    }
    const Real inverse = 1 / sum;
    for (int column = 0; column <= row; ++column) scores[column] *= inverse;
    std::fill(scores + row + 1, scores + length, Real{0});
  }
}

/// The three views of one head of one sequence in a qkv buffer.
template <class Real>
struct HeadView {
  Matrix<Real> query, key, value;

  HeadView(const AttentionShape& shape, Real* qkv, int sequence, int head)
      : query(view(shape, qkv, sequence, head, 0)),
        key(view(shape, qkv, sequence, head, 1)),
        value(view(shape, qkv, sequence, head, 2)) {}

  static Matrix<Real> view(const AttentionShape& shape, Real* qkv, int sequence, int head, int part) {
    const int stride = 3 * shape.width();
    const std::size_t firstToken = static_cast<std::size_t>(sequence) * shape.length;
    return {qkv + firstToken * stride + part * shape.width() + head * shape.headSize, shape.length, shape.headSize,
            stride};
  }
};

template <class Real>
Matrix<Real> outputView(const AttentionShape& shape, Real* output, int sequence, int head) {
  const std::size_t firstToken = static_cast<std::size_t>(sequence) * shape.length;
  return {output + firstToken * shape.width() + head * shape.headSize, shape.length, shape.headSize, shape.width()};
}

}  // namespace

template <class Real>
void attend(const AttentionShape& shape, const Real* qkv, std::vector<Real>& probabilities, Real* output) {
  const int length = shape.length;
  const Real scale = 1 / std::sqrt(static_cast<Real>(shape.headSize));
  probabilities.resize(static_cast<std::size_t>(shape.sequences) * shape.heads * length * length);
  Real* scores = probabilities.data();
  for (int sequence = 0; sequence < shape.sequences; ++sequence) {
    for (int head = 0; head < shape.heads; ++head, scores += static_cast<std::size_t>(length) * length) {
      const HeadView<const Real> in(shape, qkv, sequence, head);
      const Matrix<Real> weights(scores, length, length);
      multiply(in.query, Form::plain, in.key, Form::transposed, weights, scale);
      causalSoftmax(scores, length);
      multiply(weights, Form::plain, in.value, Form::plain, outputView(shape, output, sequence, head));
    }
  }
}

template <class Real>
void attendBackward(const AttentionShape& shape, const Real* qkv, const std::vector<Real>& probabilities,
                    const Real* outputGradient, Real* qkvGradient, std::vector<Real>& scratch) {
  const int length = shape.length;
  const Real scale = 1 / std::sqrt(static_cast<Real>(shape.headSize));
  scratch.resize(static_cast<std::size_t>(length) * length);
  const Matrix<Real> scoreGradient(scratch.data(), length, length);
  const Real* weight = probabilities.data();
  for (int sequence = 0; sequence < shape.sequences; ++sequence) {
    for (int head = 0; head < shape.heads; ++head, weight += static_cast<std::size_t>(length) * length) {
      const HeadView<const Real> in(shape, qkv, sequence, head);
      const HeadView<Real> gradient(shape, qkvGradient, sequence, head);
      const Matrix<const Real> weights(weight, length, length);
      const Matrix<const Real> out = outputView(shape, outputGradient, sequence, head);
      multiply(weights, Form::transposed, out, Form::plain, gradient.value);
      multiply(out, Form::plain, in.value, Form::transposed, scoreGradient);
      for (int row = 0; row < length; ++row) {
        Real* d = scratch.data() + static_cast<std::size_t>(row) * length;
        const Real* p = weight + static_cast<std::size_t>(row) * length;
        Real mean = 0;
        for (int column = 0; column <= row; ++column) mean += d[column] * p[column];
        for (int column = 0; column < length; ++column) d[column] = p[column] * (d[column] - mean);
      }
      multiply(scoreGradient, Form::plain, in.key, Form::plain, gradient.query, scale);
      multiply(scoreGradient, Form::transposed, in.query, Form::plain, gradient.key, scale);
    }
  }
}

template void attend(const AttentionShape&, const float*, std::vector<float>&, float*);
template void attend(const AttentionShape&, const double*, std::vector<double>&, double*);
template void attendBackward(const AttentionShape&, const float*, const std::vector<float>&, const float*, float*,
                             std::vector<float>&);
template void attendBackward(const AttentionShape&, const double*, const std::vector<double>&, const double*, double*,
                             std::vector<double>&);

}  // namespace falcon::train
