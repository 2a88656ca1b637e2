#include "metrics/families.h"

#include <limits>
#include <utility>

#include "base/escaped.h"
#include "report/metrics_text.h"

namespace falcon::metrics {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

using Labels = std::vector<ClientMetric::Label>;

ClientMetric metricOf(const RankMetrics& rank, const std::string& communicator, Labels more = {}) {
  ClientMetric metric;
  metric.label = {{"node", validUtf8(rank.node)},
                  {"gpu", ""},
                  {"rank", std::to_string(rank.rank)},
                  {"comm_name", validUtf8(communicator)},
                  {"job", validUtf8(rank.job)}};
  metric.label.insert(metric.label.end(), more.begin(), more.end());
  return metric;
}

ClientMetric gauge(const RankMetrics& rank, double value, Labels more = {}) {
  ClientMetric metric = metricOf(rank, "", std::move(more));
  metric.gauge.value = value;
  return metric;
}

ClientMetric counter(const RankMetrics& rank, double value, Labels more = {}) {
  ClientMetric metric = metricOf(rank, "", std::move(more));
  metric.counter.value = value;
  return metric;
}

ClientMetric histogram(const RankMetrics& rank, const std::pair<std::string, std::string>& name,
                       const report::DurationHistogram& durations) {
  ClientMetric metric = metricOf(rank, name.first, {{"operation", name.second}});
  metric.histogram.sample_count = durations.count;
  metric.histogram.sample_sum = durations.sum;
  for (std::size_t i = 0; i < durations.within.size(); ++i)
    metric.histogram.bucket.push_back({durations.within[i], report::DurationHistogram::bounds[i]});
  metric.histogram.bucket.push_back({durations.count, std::numeric_limits<double>::infinity()});
  return metric;
}

/// Of the devices that net plugins tell of.
struct NetFamilies {
  MetricFamily score{"nccl_falcon_net_congestion_score",
                     "How congested a device's worst connection is, 0 to 1; below 0.1 it is healthy.",
                     MetricType::Gauge,
                     {}};
  MetricFamily sent{"nccl_falcon_net_sent_bytes_total",
                    "Bytes that a rank has sent by a device, through its net plugin.",
                    MetricType::Counter,
                    {}};
  MetricFamily received{"nccl_falcon_net_received_bytes_total",
                        "Bytes that a rank has received by a device, through its net plugin.",
                        MetricType::Counter,
                        {}};

  void add(const RankMetrics& rank) {
    if (!rank.net) return;
    for (const auto& device : rank.net->devices) {
      const Labels labels{{"plugin", validUtf8(rank.net->plugin)}, {"device", validUtf8(device.name)}};
      // Who sends nothing is as little congested as can be seen: a gap would look as if the rank were gone.
      score.metric.push_back(gauge(rank, device.score, labels));
      sent.metric.push_back(counter(rank, static_cast<double>(device.bytesSent), labels));
      received.metric.push_back(counter(rank, static_cast<double>(device.bytesReceived), labels));
    }
  }
};

}  // namespace

std::vector<MetricFamily> familiesOf(const std::map<std::string, RankMetrics>& ranks) {
  namespace help = report::help;
  MetricFamily iteration{"nccl_falcon_iteration_seconds", help::iteration, MetricType::Gauge, {}};
  MetricFamily collective{"nccl_falcon_collective_duration_seconds", help::collective, MetricType::Histogram, {}};
  MetricFamily missed{"nccl_falcon_missed_calls_total",
                      "Calls that were over before this exporter could read them.",
                      MetricType::Counter,
                      {}};
  MetricFamily failslow{"nccl_falcon_failslow_active", help::failslow, MetricType::Gauge, {}};
  MetricFamily minor{"nccl_falcon_minor_active", help::minor, MetricType::Gauge, {}};
  MetricFamily mitigations{"nccl_falcon_mitigations_total", help::mitigations, MetricType::Counter, {}};
  MetricFamily build{"nccl_falcon_build_info", help::build, MetricType::Gauge, {}};
  NetFamilies net;
  for (const auto& [path, rank] : ranks) {
    net.add(rank);
    if (rank.iterationSeconds > 0) iteration.metric.push_back(gauge(rank, rank.iterationSeconds));
    for (const auto& [name, durations] : rank.durations.byName())
      collective.metric.push_back(histogram(rank, name, durations));
    missed.metric.push_back(counter(rank, static_cast<double>(rank.missed)));
    build.metric.push_back(gauge(rank, 1, {{"version", report::version}}));
    if (!rank.facts) continue;
    for (const char* kind : {"rank", "link", "host"})
      failslow.metric.push_back(gauge(rank, rank.facts->active(kind), {{"kind", kind}}));
    minor.metric.push_back(gauge(rank, rank.facts->minor() ? 1 : 0));
    for (const char* action : report::mitigationActions)
      for (const char* result : report::mitigationResults) {
        const auto found = rank.facts->mitigations().find({action, result});
        const int count = found == rank.facts->mitigations().end() ? 0 : found->second;
        mitigations.metric.push_back(counter(rank, count, {{"action", action}, {"result", result}}));
      }
  }
  std::vector<MetricFamily> families;
  for (MetricFamily* each : {&iteration, &collective, &missed, &failslow, &minor, &mitigations, &build, &net.score,
                             &net.sent, &net.received})
    if (!each->metric.empty()) families.push_back(std::move(*each));
  return families;
}

}  // namespace falcon::metrics
