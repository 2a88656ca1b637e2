// The one thing that a layer asks of its tensor-parallel peers.
#pragma once

#include <cstddef>

namespace falcon::train {

template <class Real>
class Reducer {
 public:
  virtual ~Reducer() = default;
  /// Sums in place over all tensor-parallel ranks; all call it in the same order. Throws when it cannot.
  virtual void sum(Real* values, std::size_t count) = 0;
};

/// A rank without peers.
template <class Real>
class NoReducer final : public Reducer<Real> {
 public:
  void sum(Real*, std::size_t) override {}
};

}  // namespace falcon::train
