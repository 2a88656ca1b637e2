#include "report/metrics_text.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>

namespace falcon::report {
namespace {

// Label values: backslash, quote and line end are escaped.
std::string escaped(const std::string& value) {
  std::string out;
  for (const char c : value) {
    if (c == '\\' || c == '"')
      (out += '\\') += c;
    else if (c == '\n')
      out += "\\n";
    else
      out += c;
  }
  return out;
}

}  // namespace

std::string metricsText(const JobMetrics& metrics) {
  const std::string labels = fmt::format("node=\"{}\",gpu=\"\",rank=\"{}\",comm_name=\"\",job=\"{}\"",
                                         escaped(metrics.node), metrics.rank, escaped(metrics.job));
  std::string text;
  const auto metric = [&text](const char* name, const char* type, const char* help) {
    text += fmt::format("# HELP {} {}\n# TYPE {} {}\n", name, help, name, type);
  };
  metric("nccl_falcon_iteration_seconds", "gauge", "Duration of the latest training iteration.");
  text += fmt::format("nccl_falcon_iteration_seconds{{{}}} {:.6f}\n", labels, metrics.iterationSeconds);
  metric("nccl_falcon_failslow_active", "gauge", "Fail-slows that are known and not relieved.");
  text += fmt::format("nccl_falcon_failslow_active{{{},kind=\"rank\"}} {}\n", labels, metrics.slowRanks);
  text += fmt::format("nccl_falcon_failslow_active{{{},kind=\"link\"}} {}\n", labels, metrics.slowLinks);
  metric("nccl_falcon_mitigations_total", "counter", "Mitigations by action and result.");
  // All of them from the first scrape on: a counter that appears with its first count hides that count from rate().
  for (const char* action : {"reroute", "split"}) {
    for (const char* result : {"applied", "refused", "undone"}) {
      const auto found = metrics.mitigations.find({action, result});
      text += fmt::format("nccl_falcon_mitigations_total{{{},action=\"{}\",result=\"{}\"}} {}\n", labels, action,
                          result, found == metrics.mitigations.end() ? 0 : found->second);
    }
  }
  metric("nccl_falcon_build_info", "gauge", "Always 1; the version is in the label.");
  text += fmt::format("nccl_falcon_build_info{{{},version=\"0.1.0\"}} 1\n", labels);
  return text;
}

Status writeMetrics(const std::string& path, const JobMetrics& metrics) {
  const std::string temporary = fmt::format("{}.{}.new", path, getpid());
  {
    std::ofstream file(temporary, std::ios::trunc);
    file << metricsText(metrics);
    if (!file.flush()) {
      const Error problem = Error::system("metrics file {} cannot be written: {}", path, std::strerror(errno));
      std::remove(temporary.c_str());
      return problem;
    }
  }
  if (std::rename(temporary.c_str(), path.c_str()) != 0) {
    const Error problem = Error::system("metrics file {} cannot be replaced: {}", path, std::strerror(errno));
    std::remove(temporary.c_str());
    return problem;
  }
  return {};
}

}  // namespace falcon::report
