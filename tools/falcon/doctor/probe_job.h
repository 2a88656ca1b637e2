// The small job of `falcon probe`, as one of its ranks runs it.
#pragma once

#include "base/result.h"

namespace falcon::doctor {

struct ProbeTimes {
  double iteration = 0;
  double compute = 0;
  double allReduce = 0;
};

/// `iterations` times a fixed number of matrix products, then an all-reduce of 4 MiB. The same on all ranks.
Result<ProbeTimes> runProbeJob(int iterations, int& rank);

}  // namespace falcon::doctor
