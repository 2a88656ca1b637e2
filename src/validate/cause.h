// Why a slow processor is slow, from what the kernel counted meanwhile. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "validate/figures.h"

namespace falcon::validate {

enum class Cause : std::uint8_t {
  unexplained,  ///< too little was counted to tell
  quota,
  contention,
  thermal,
  powerCap,
  memory,
  hardware  ///< it ran all the time, nothing held it back, and still it is slow
};
/// "CPU quota", "CPU contention", "thermal throttling" ...
const char* nameOf(Cause cause);

/// Of one rank's tests. Shares are of the test's wall time, 0 to 1. NaN: the kernel does not tell.
struct CauseEvidence {
  double computeSlowness = unknown;  ///< how many times slower than its peers' it computes
  double memorySlowness = unknown;   ///< the same for moving memory
  double throttled = unknown;        ///< held back by the quota of its cgroup
  double waited = unknown;           ///< ready, while others ran on its processors
  double stolen = unknown;           ///< its processors given to other virtual machines
  double ran = unknown;              ///< processor time over wall time
  double processors = unknown;       ///< that it may use
  double thermalThrottles = unknown;
  double power = unknown;  ///< drawn, over what the package may draw
};

struct Diagnosis {
  Cause cause = Cause::unexplained;
  std::string evidence;  ///< the figure that decided it, for people; may be empty
};

/// The medians of all ranks: what is usual on this machine.
CauseEvidence usualOf(const std::vector<CauseEvidence>& all);

/// For a rank that is slow. What its peers suffer alike explains nothing: shares count above the usual ones. A quota
/// comes first (a throttled thread may also be seen waiting), then contention, then what the hardware tells.
Diagnosis diagnose(const CauseEvidence& rank, const CauseEvidence& usual);

}  // namespace falcon::validate
