#include "control/metrics_file.h"

#include <utility>

#include "base/job_rank.h"
#include "base/log.h"

namespace falcon::control {
namespace {

// What a busy rank calls in a second, and far less than the log holds. The rest of an even busier one is read a second
// later, as long as the log has it.
constexpr std::size_t mostRecords = 1 << 14;

}  // namespace

MetricsFile::MetricsFile(std::string path, std::string job, std::string node, std::function<double()> wallTime)
    : path_(std::move(path)), wallTime_(std::move(wallTime)) {
  metrics_.job = std::move(job);
  metrics_.node = std::move(node);
  metrics_.rank = jobRankFromEnvironment();
}

void MetricsFile::write(const Controller& controller, instrument::CallLog& calls) {
  fresh_.clear();
  calls.readFrom(nextRecord_, fresh_, mostRecords);
  for (const CallRecord& record : fresh_) durations_.add(record);
  metrics_.iterationSeconds =
      static_cast<double>(calls.header().iterationNanoseconds.load(std::memory_order_relaxed)) * 1e-9;
  metrics_.slowRanks = controller.activeCount(CulpritKind::rank);
  metrics_.slowLinks = controller.activeCount(CulpritKind::link);
  metrics_.slowHosts = controller.activeCount(CulpritKind::host);
  metrics_.minor = controller.isMinor();
  metrics_.writtenAt = wallTime_();
  metrics_.mitigations = controller.mitigations();
  metrics_.durations = durations_.byName();
  const auto written = report::writeMetrics(path_, metrics_);
  if (written || failed_) return;
  failed_ = true;
  log::notice("{}", written.error().message());
}

}  // namespace falcon::control
