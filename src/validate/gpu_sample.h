// One GPU's test together with what its management library told before and after it.
#pragma once

#include <memory>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "validate/gpu_state.h"
#include "validate/gpu_test.h"

namespace falcon::validate {

/// A state is empty where nobody tells it.
struct GpuSample {
  GpuScore score;
  GpuState before, after;
  Nanoseconds span{0};  ///< between the two states
};

std::string encode(const GpuSample& sample);
Result<GpuSample> decodeGpuSample(std::string_view bytes);

/// For one thread at a time.
class GpuTester {
 public:
  virtual ~GpuTester() = default;
  /// Blocks for about `span`, the first time for as long as its libraries and kernels take to load, too.
  /// @param device  CUDA's number of it in this process. Errors: it cannot be tested.
  virtual Result<GpuSample> run(int device, Nanoseconds span) = 0;
};

/// Opens the module and NVML at the first run. Without NVML the states are empty.
std::unique_ptr<GpuTester> makeGpuTester(const Clock& clock);

}  // namespace falcon::validate
