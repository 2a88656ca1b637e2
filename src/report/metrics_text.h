// The metrics text file, as a Prometheus node exporter's textfile collector reads it: replaced by an atomic rename.
#pragma once

#include <string>

#include "base/result.h"
#include "base/types.h"

namespace falcon::report {

struct JobMetrics {
  std::string job;
  std::string node;
  Rank rank = -1;
  double iterationSeconds = 0;
  int slowRanks = 0;  ///< fail-slows active now
  int slowLinks = 0;
  int mitigationsApplied = 0;
  int mitigationsRefused = 0;
};

/// The exposition text: nccl_falcon_iteration_seconds, nccl_falcon_failslow_active, nccl_falcon_mitigations_total,
/// nccl_falcon_build_info.
std::string metricsText(const JobMetrics& metrics);

Status writeMetrics(const std::string& path, const JobMetrics& metrics);

}  // namespace falcon::report
