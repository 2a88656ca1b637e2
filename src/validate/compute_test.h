// How much a rank's processor gets done in wall time: one long span of matrix products.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/result.h"
#include "validate/matrix_product.h"
#include "validate/processor_stat.h"

namespace falcon::validate {

enum class Precision : std::uint8_t { f32, f64 };

struct ComputeScore {
  double gigaflopsPerSecond = 0;  ///< of wall time, not of processor time: a quota shows only in wall time
  Nanoseconds wall{0};
  Nanoseconds processor{0};  ///< processor time of the testing thread in the span
  ProcessorStat stat;        ///< what the kernel counted in the span
  std::string product;       ///< whose matrix product it was
};

/// A processor's test. Blocks its thread for about `span`.
class ComputeBenchmark {
 public:
  virtual ~ComputeBenchmark() = default;
  /// At least 500 ms make sense, five periods of a CPU quota: shorter spans do not see one.
  virtual Result<ComputeScore> run(Nanoseconds span) = 0;
};

/// Products of 192 x 192 numbers (3 x 144 KiB of floats, within L2), on the calling thread. Memory is taken for the run
/// only.
/// @param product  null: matrixProduct(), opened at the first run
/// @param stop     asked about every millisecond; true ends the run with an error
std::unique_ptr<ComputeBenchmark> makeComputeBenchmark(const Clock& clock, const MatrixProduct* product = nullptr,
                                                       std::function<bool()> stop = {},
                                                       Precision precision = Precision::f32);

}  // namespace falcon::validate
