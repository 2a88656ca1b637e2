// Causal self-attention between the projections: softmax(Q K^T / sqrt(size)) V, per sequence and head. No parameters.
#pragma once

#include <vector>

namespace falcon::train {

/// The part of the heads that this rank has.
struct AttentionShape {
  int sequences = 0;
  int length = 0;
  int heads = 0;
  int headSize = 0;

  int width() const { return heads * headSize; }
};

/// qkv[token][query | key | value] -> output[token][width]; probabilities[sequence][head][length][length] are kept.
template <class Real>
void attend(const AttentionShape& shape, const Real* qkv, std::vector<Real>& probabilities, Real* output);

/// Sets qkvGradient; `scratch` is the caller's, of any size, so that no call allocates.
template <class Real>
void attendBackward(const AttentionShape& shape, const Real* qkv, const std::vector<Real>& probabilities,
                    const Real* outputGradient, Real* qkvGradient, std::vector<Real>& scratch);

}  // namespace falcon::train
