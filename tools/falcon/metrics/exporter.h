// What `falcon metrics` gives out, in a module that is opened for it: no other command needs Prometheus' library.
#pragma once

namespace falcon::metrics {

inline constexpr const char* exporterFile = "libnccl_falcon_metrics.so";

/// The module's only export. `job` "": all. `listen`: an address of this host's own, at which Prometheus is answered
/// until a signal that ends programs comes; "": all is printed once. False: it has said what went wrong.
using ExportMetrics = bool (*)(const char* job, const char* listen);
inline constexpr const char* exportMetricsName = "falconExportMetrics";

}  // namespace falcon::metrics
