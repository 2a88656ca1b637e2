// A doctor's job and the GPUs: every device is tested by one rank of its host.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/types.h"
#include "validate/gpu_cause.h"

namespace falcon::doctor {

struct GpuMeasurement {
  Rank rank = -1;  ///< that tested it
  validate::GpuSample sample;
  std::string problem;  ///< why it could not be tested; empty: it was
};

/// Tests the device whose number is `localRank`, the rank's place among those of its host. Nothing where the host has
/// no CUDA driver, or not so many devices. Blocks for about `span`.
std::optional<GpuMeasurement> measureGpu(Rank rank, int localRank, Nanoseconds span);

std::string encode(const std::optional<GpuMeasurement>& measured);
Result<std::optional<GpuMeasurement>> decodeGpu(std::string_view bytes);

}  // namespace falcon::doctor
