// Ranks in figures as Prometheus' own library writes them.
#pragma once

#include <prometheus/metric_family.h>

#include <map>
#include <string>
#include <vector>

#include "metrics/rank_metrics.h"

namespace falcon::metrics {

/// nccl_falcon_iteration_seconds, nccl_falcon_collective_duration_seconds, nccl_falcon_missed_calls_total and
/// nccl_falcon_build_info for every rank; nccl_falcon_failslow_active and nccl_falcon_mitigations_total for those that
/// speak for their job; nccl_falcon_net_congestion_score, nccl_falcon_net_sent_bytes_total and
/// nccl_falcon_net_received_bytes_total for the devices of those whose net plugin
/// tells of them. Families without a sample are left out.
std::vector<prometheus::MetricFamily> familiesOf(const std::map<std::string, RankMetrics>& ranks);

}  // namespace falcon::metrics
