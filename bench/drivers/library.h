// What a library under measurement offers to the loop.
#pragma once

#include <algorithm>
#include <functional>

#include "collectives.h"

namespace falcon::bench {

struct Buffers {
  float* send;
  float* receive;
};

/// One rank's end of a library that has been initialised. A call that fails ends the process with a line on stderr.
class Library {
 public:
  virtual ~Library() = default;

  virtual int rank() const = 0;
  virtual int ranks() const = 0;

  /// What is to be called again and again. Whatever the library lets its users prepare once is done here, not in the
  /// call. Empty where the library does not have this collective.
  virtual std::function<void()> prepare(Collective collective, const Shape& shape, const Buffers& buffers) = 0;

  /// Returns the same on every rank; all ranks call it.
  virtual double maximum(double value) = 0;
  virtual void barrier() = 0;
};

}  // namespace falcon::bench
