#include "report/metrics_text.h"

#include "base/escaped.h"
#include "base/whole_file.h"

namespace falcon::report {

std::string metricsText(const JobMetrics& metrics) {
  const auto labels = [&](const std::string& communicator) {
    return fmt::format("node=\"{}\",gpu=\"\",rank=\"{}\",comm_name=\"{}\",job=\"{}\"", labelValue(metrics.node),
                       metrics.rank, labelValue(communicator), labelValue(metrics.job));
  };
  const std::string common = labels("");
  std::string text;
  const auto metric = [&text](const char* name, const char* type, const char* help) {
    text += fmt::format("# HELP {} {}\n# TYPE {} {}\n", name, help, name, type);
  };
  if (metrics.iterationSeconds > 0) {
    metric("nccl_falcon_iteration_seconds", "gauge", help::iteration);
    text += fmt::format("nccl_falcon_iteration_seconds{{{}}} {:.6f}\n", common, metrics.iterationSeconds);
  }
  if (!metrics.durations.empty()) metric("nccl_falcon_collective_duration_seconds", "histogram", help::collective);
  for (const auto& [name, durations] : metrics.durations) {
    const std::string series = fmt::format("{},operation=\"{}\"", labels(name.first), labelValue(name.second));
    const auto bucket = [&](const std::string& bound, std::uint64_t count) {
      text += fmt::format("nccl_falcon_collective_duration_seconds_bucket{{{},le=\"{}\"}} {}\n", series, bound, count);
    };
    for (std::size_t i = 0; i < durations.within.size(); ++i)
      bucket(fmt::format("{:g}", DurationHistogram::bounds[i]), durations.within[i]);
    bucket("+Inf", durations.count);
    text += fmt::format("nccl_falcon_collective_duration_seconds_sum{{{}}} {:.9f}\n", series, durations.sum);
    text += fmt::format("nccl_falcon_collective_duration_seconds_count{{{}}} {}\n", series, durations.count);
  }
  metric("nccl_falcon_failslow_active", "gauge", help::failslow);
  text += fmt::format("nccl_falcon_failslow_active{{{},kind=\"rank\"}} {}\n", common, metrics.slowRanks);
  text += fmt::format("nccl_falcon_failslow_active{{{},kind=\"link\"}} {}\n", common, metrics.slowLinks);
  text += fmt::format("nccl_falcon_failslow_active{{{},kind=\"host\"}} {}\n", common, metrics.slowHosts);
  metric("nccl_falcon_minor_active", "gauge", help::minor);
  text += fmt::format("nccl_falcon_minor_active{{{}}} {}\n", common, metrics.minor ? 1 : 0);
  metric("nccl_falcon_mitigations_total", "counter", help::mitigations);
  // All of them from the first scrape on: a counter that appears with its first count hides that count from rate().
  for (const char* action : mitigationActions) {
    for (const char* result : mitigationResults) {
      const auto found = metrics.mitigations.find({action, result});
      text += fmt::format("nccl_falcon_mitigations_total{{{},action=\"{}\",result=\"{}\"}} {}\n", common, action,
                          result, found == metrics.mitigations.end() ? 0 : found->second);
    }
  }
  metric("nccl_falcon_build_info", "gauge", help::build);
  text += fmt::format("nccl_falcon_build_info{{{},version=\"{}\"}} 1\n", common, version);
  metric("nccl_falcon_written_timestamp_seconds", "gauge", help::written);
  text += fmt::format("nccl_falcon_written_timestamp_seconds{{{}}} {:.3f}\n", common, metrics.writtenAt);
  return text;
}

Status writeMetrics(const std::string& path, const JobMetrics& metrics) {
  // The node exporter, another user, reads it.
  const auto written = writeWhole(path, metricsText(metrics), forAllToRead);
  return written ? written : Error::system("metrics file {}", written.error().message());
}

}  // namespace falcon::report
