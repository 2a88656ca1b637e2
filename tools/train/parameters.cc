#include "train/parameters.h"

#include <algorithm>

#include "train/counter_random.h"

namespace falcon::train {

namespace {

double initialValue(const ParameterSpec& spec, std::uint64_t seed, int row, int column) {
  switch (spec.initial) {
    case Initial::zeros:
      return 0;
    case Initial::ones:
      return 1;
    case Initial::normal:
      return spec.deviation * normal(keyOf(seed, spec.key, row, column));
  }
  return 0;
}

}  // namespace

template <class Real>
Parameter ParameterBucket<Real>::add(const ParameterSpec& spec) {
  Parameter part{values_.size(), spec.rows, spec.columns};
  if (spec.split == Split::rows) part.rows /= shard_.count;
  if (spec.split == Split::columns) part.columns /= shard_.count;
  const int firstRow = spec.split == Split::rows ? shard_.index * part.rows : 0;
  const int blockColumns = spec.columns / spec.columnBlocks;
  const int partBlockColumns = part.columns / spec.columnBlocks;
  const int firstColumn = spec.split == Split::columns ? shard_.index * partBlockColumns : 0;

  values_.reserve(values_.size() + static_cast<std::size_t>(part.rows) * part.columns);
  for (int row = 0; row < part.rows; ++row) {
    for (int column = 0; column < part.columns; ++column) {
      const int globalColumn = column / partBlockColumns * blockColumns + firstColumn + column % partBlockColumns;
      values_.push_back(static_cast<Real>(initialValue(spec, seed_, firstRow + row, globalColumn)));
    }
  }
  gradients_.resize(values_.size());
  return part;
}

template <class Real>
void ParameterBucket<Real>::clearGradients() {
  std::fill(gradients_.begin(), gradients_.end(), Real{0});
}

template class ParameterBucket<float>;
template class ParameterBucket<double>;

}  // namespace falcon::train
