// How fast a rank's processor moves memory that no cache holds.
#pragma once

#include "base/result.h"
#include "validate/processor_stat.h"

namespace falcon::validate {

struct MemoryScore {
  double bytesPerSecond = 0;  ///< read and written, of wall time
  Nanoseconds wall{0};
  ProcessorStat stat;
};

/// Copies one half of `bytes` over the other, again and again, on the calling thread, which it blocks for about `span`.
/// The memory is taken for the run only. Errors: no memory.
Result<MemoryScore> testMemory(const Clock& clock, Nanoseconds span, std::size_t bytes = std::size_t{128} << 20);

}  // namespace falcon::validate
