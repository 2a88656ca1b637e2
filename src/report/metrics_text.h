// The metrics text file, as a Prometheus node exporter's textfile collector reads it: replaced by an atomic rename.
#pragma once

#include <map>
#include <string>
#include <utility>

#include "base/result.h"
#include "base/types.h"
#include "report/duration_histogram.h"

namespace falcon::report {

inline constexpr const char* version = "0.1.0";

struct JobMetrics {
  std::string job;
  std::string node;
  Rank rank = -1;
  double iterationSeconds = 0;
  int slowRanks = 0;  ///< fail-slows active now
  int slowLinks = 0;
  int slowHosts = 0;
  bool minor = false;                                              ///< a minor slowness is active now
  double writtenAt = 0;                                            ///< seconds since 1970
  std::map<std::pair<std::string, std::string>, int> mitigations;  ///< by action and result
  CollectiveDurations::ByName durations;                           ///< of this rank's collectives
};

/// What is done about fail-slows, and how it ends: the labels of nccl_falcon_mitigations_total.
inline constexpr const char* mitigationActions[] = {"reroute", "split", "swap", "restart"};
inline constexpr const char* mitigationResults[] = {"applied", "refused", "undone"};

/// What each metric means, its HELP line.
namespace help {
inline constexpr const char* iteration = "Duration of the latest training iteration.";
inline constexpr const char* collective = "Time inside of the library, by collective.";
inline constexpr const char* failslow = "Fail-slows that are known and not relieved.";
inline constexpr const char* minor = "1 while iterations have been a little slower for long: below an onset.";
inline constexpr const char* written =
    "Seconds since 1970 when the controller wrote this file, once a second while the job runs.";
inline constexpr const char* mitigations = "Mitigations by action and result.";
inline constexpr const char* build = "Always 1; the version is in the label.";
}  // namespace help

/// The exposition text: nccl_falcon_iteration_seconds, nccl_falcon_collective_duration_seconds,
/// nccl_falcon_failslow_active, nccl_falcon_minor_active, nccl_falcon_mitigations_total, nccl_falcon_build_info,
/// nccl_falcon_written_timestamp_seconds.
std::string metricsText(const JobMetrics& metrics);

Status writeMetrics(const std::string& path, const JobMetrics& metrics);

}  // namespace falcon::report
