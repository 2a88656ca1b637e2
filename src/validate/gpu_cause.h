// Which GPU is slow and why, from its tests and from what its management library tells. Pure.
#pragma once

#include <vector>

#include "validate/cause.h"
#include "validate/gpu_sample.h"

namespace falcon::validate {

struct GpuJudgement {
  double slowdown = 1;  ///< of the figure that is worst: how many times slower than the median of its peers
  bool slow = false;
  Cause cause = Cause::unexplained;
  std::string evidence;  ///< the figures that decided, for people; also of a healthy one that reported an error
};

/// Each against the median of those of the same name; slow from 1.2 times on (Falcon, arXiv 2410.12588, section 4.3).
/// Fewer than three of one name are not called slow: with two, either could be the odd one. Why a slow one is slow:
/// critical errors first, then heat, then power (where its peers have enough), then slow memory, then the hardware.
std::vector<GpuJudgement> judgeGpus(const std::vector<GpuSample>& samples);

}  // namespace falcon::validate
