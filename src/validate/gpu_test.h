// How much a GPU gets done: matrix products in each of its formats, copies within its memory and to the host.
#pragma once

#include <array>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "validate/gpu_module/gpu_module.h"

namespace falcon::validate {

/// "f32", "tf32", "f16", "bf16", "f8".
const char* nameOf(FalconGpuProduct product);

/// NaN: the device cannot do it.
struct GpuScore {
  std::string device;  ///< "NVIDIA H200"
  std::string bus;     ///< PCI address
  std::array<double, falconGpuProducts> operationsPerSecond{};
  double copyRate = 0;        ///< bytes per second read and written within the device's memory
  double toDeviceRate = 0;    ///< bytes per second, from pinned host memory
  double fromDeviceRate = 0;  ///< bytes per second, to pinned host memory
};

/// The GPUs that this process may use. Thread-safe.
class GpuBenchmark {
 public:
  virtual ~GpuBenchmark() = default;
  /// At least 1. Errors: no driver, no device.
  virtual Result<int> devices() const = 0;
  /// Blocks its thread for about `span` (and some 0.3 s more the first time, while kernels are loaded). Products of up
  /// to 4096 x 4096 matrices; up to 200 MiB of the device's memory for that time.
  /// @param device  -1: the one of the calling thread's CUDA context
  virtual Result<GpuScore> run(int device, Nanoseconds span) const = 0;
};

/// libnccl_falcon_gpu.so. Errors: it was not built (no CUDA toolkit), or the CUDA libraries it needs are missing here.
/// @param path  "": beside this library
Result<std::unique_ptr<const GpuBenchmark>> openGpuBenchmark(const std::string& path = "");

}  // namespace falcon::validate
