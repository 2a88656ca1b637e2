// How much of the power that it may draw a processor draws.
#pragma once

#include <string>

#include "base/clock.h"
#include "validate/figures.h"

namespace falcon::validate {

/// Microjoules used and watts allowed, of the processor's first package. NaN where the kernel does not tell.
struct PackagePower {
  double microjoules = unknown;
  double limitWatts = unknown;
};
PackagePower readPackagePower(const std::string& folder = "/sys/class/powercap/intel-rapl:0");
/// Drawn over allowed; NaN where unknown or where the counter began anew.
double packagePowerShare(const PackagePower& before, const PackagePower& after, Nanoseconds between);

}  // namespace falcon::validate
