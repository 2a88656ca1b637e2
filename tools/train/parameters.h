// Parameters with their gradients. One bucket per layer: what one AllReduce sums and one optimiser step updates.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "train/model_shape.h"

namespace falcon::train {

enum class Split { none, rows, columns };
enum class Initial { zeros, ones, normal };

/// A tensor of the whole model, before it is split over the tensor-parallel ranks.
struct ParameterSpec {
  std::uint64_t key = 0;  ///< different for every tensor of the model, the same whatever the split
  int rows = 1;
  int columns = 1;
  Split split = Split::none;
  int columnBlocks =
      1;  ///< Split::columns: each of these equal blocks of columns is split by itself (query, key, value)
  Initial initial = Initial::zeros;
  double deviation = 0;  ///< Initial::normal
};

/// Where this rank's part of a tensor lies in its bucket.
struct Parameter {
  std::size_t offset = 0;
  int rows = 0;
  int columns = 0;
};

/// The parameters of one layer, contiguous. Used by one thread.
template <class Real>
class ParameterBucket {
 public:
  ParameterBucket(std::uint64_t seed, Shard shard) : seed_(seed), shard_(shard) {}

  /// Adds this rank's part with its initial values; they are those of the whole tensor at the same place.
  Parameter add(const ParameterSpec& spec);

  const Real* value(const Parameter& parameter) const { return values_.data() + parameter.offset; }
  Real* gradient(const Parameter& parameter) { return gradients_.data() + parameter.offset; }

  std::size_t count() const { return values_.size(); }
  std::vector<Real>& values() { return values_; }
  std::vector<Real>& gradients() { return gradients_; }
  void clearGradients();

 private:
  std::uint64_t seed_;
  Shard shard_;
  std::vector<Real> values_;
  std::vector<Real> gradients_;
};

}  // namespace falcon::train
