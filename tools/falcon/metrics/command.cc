#include "metrics/command.h"

#include <memory>
#include <string>

#include "base/module_file.h"
#include "base/own_files.h"
#include "base/socket_address.h"
#include "metrics/exporter.h"
#include "print.h"

namespace falcon::tools {
namespace {

struct MetricsOptions {
  std::string job, listen;
};

bool isLoopback(const SocketAddress& address) {
  return address.host().starts_with("127.") || address.host() == "::1" || address.host() == "[::1]";
}

/// Says what is wrong with it.
bool canListenAt(const std::string& given) {
  const auto address = SocketAddress::parseNumeric(given);
  if (!address) {
    print(stderr, "falcon metrics: {} is not an address and port, such as 127.0.0.1:9464\n", given);
    return false;
  }
  if (isLoopback(*address)) return true;
  print(stderr,
        "falcon metrics: {} is not a loopback address; there is no password, so other hosts are not answered. "
        "Put a proxy before it, or let the node exporter read NCCL_FALCON_METRICS\n",
        given);
  return false;
}

int exportMetrics(const MetricsOptions& options) {
  if (!options.listen.empty() && !canListenAt(options.listen)) return badUsage;
  const std::string path = ownLibrary(metrics::exporterFile).value_or(metrics::exporterFile);
  const auto found = symbolOfModule(path, metrics::exportMetricsName);
  if (!found) {
    print(
        stderr,
        "falcon metrics: {} cannot be opened: {}. It lies in lib/nccl-falcon of an installation, and needs Prometheus' "
        "library for C++: install the package libprometheus-cpp-pull1.0 (Debian, Ubuntu)\n",
        path, found.error().message());
    return toolFailed;
  }
  const auto exporter = reinterpret_cast<metrics::ExportMetrics>(*found);
  return exporter(options.job.c_str(), options.listen.c_str()) ? healthy : toolFailed;
}

}  // namespace

void addMetricsCommand(CLI::App& app, int& exitCode) {
  auto options = std::make_shared<MetricsOptions>();
  CLI::App* command = app.add_subcommand(
      "metrics", "Prometheus metrics of the jobs that run on this host: on stdout, or over loopback HTTP");
  command->add_option("--listen", options->listen,
                      "Answer Prometheus here until Ctrl-C, e.g. 127.0.0.1:9464; loopback addresses only");
  command->add_option("--job", options->job, "Only this job, by its name");
  command->callback([options, &exitCode] { exitCode = exportMetrics(*options); });
}

}  // namespace falcon::tools
