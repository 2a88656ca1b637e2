#include "validate/package_power.h"

#include <fstream>

namespace falcon::validate {
namespace {

double numberIn(const std::string& path) {
  std::ifstream file(path);
  double value = unknown;
  return file >> value ? value : unknown;
}

}  // namespace

PackagePower readPackagePower(const std::string& folder) {
  return {numberIn(folder + "/energy_uj"), numberIn(folder + "/constraint_0_power_limit_uw") / 1e6};
}

double packagePowerShare(const PackagePower& before, const PackagePower& after, Nanoseconds between) {
  const double joules = (after.microjoules - before.microjoules) / 1e6;
  if (!(joules >= 0) || !(after.limitWatts > 0) || between <= 0ns) return unknown;
  return joules / seconds(between) / after.limitWatts;
}

}  // namespace falcon::validate
