// The metrics text file, as a Prometheus node exporter's textfile collector reads it: replaced by an atomic rename.
#pragma once

#include <map>
#include <string>
#include <utility>

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
  std::map<std::pair<std::string, std::string>, int> mitigations;  ///< by action and result
};

/// The exposition text: nccl_falcon_iteration_seconds, nccl_falcon_failslow_active, nccl_falcon_mitigations_total,
/// nccl_falcon_build_info.
std::string metricsText(const JobMetrics& metrics);

Status writeMetrics(const std::string& path, const JobMetrics& metrics);

}  // namespace falcon::report
