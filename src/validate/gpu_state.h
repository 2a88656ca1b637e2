// What the GPU's management library tells about a device: clocks, temperature, power, what holds it back, its errors.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/result.h"

namespace falcon::validate {

/// Empty: this device or driver does not tell.
struct GpuState {
  std::optional<double> clock;                ///< of the multiprocessors, MHz
  std::optional<double> highestClock;         ///< MHz
  std::optional<double> temperature;          ///< degrees Celsius
  std::optional<double> slowdownTemperature;  ///< from which on the device slows down
  std::optional<double> power;                ///< drawn, watts
  std::optional<double> powerLimit;           ///< watts
  std::optional<std::uint64_t> reasons;       ///< what holds the clocks back now: NVML's bits
  // Counters: only differences say something.
  std::optional<Nanoseconds> heldByPower;    ///< time below the wanted clocks for want of power
  std::optional<Nanoseconds> heldByThermal;  ///< the same for heat
  std::optional<std::uint64_t> uncorrected;  ///< memory errors that could not be corrected, since the driver was loaded
  /// The newest critical error (XID) since the library was opened; 0: none.
  std::optional<std::uint64_t> lastXid;
};

/// What holds the clocks back, in words: "thermal slowdown by software, power cap"; "" for nothing that matters.
std::string describeReasons(std::uint64_t reasons);

/// Thread-safe.
class GpuManagement {
 public:
  virtual ~GpuManagement() = default;
  /// @param bus  the device's PCI address, as CUDA gives it. Errors: the library does not know it.
  virtual Result<GpuState> stateOf(const std::string& bus) = 0;
};

/// Opens NVML at run time. Errors: it is not there, or cannot be initialised.
Result<std::unique_ptr<GpuManagement>> openGpuManagement(const std::string& path = "libnvidia-ml.so.1");

}  // namespace falcon::validate
