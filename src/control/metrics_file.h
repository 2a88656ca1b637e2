// The metrics file of this process, rewritten once a second while it is the controller.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "control/controller.h"
#include "instrument/call_log.h"
#include "report/metrics_text.h"

namespace falcon::control {

/// Used by the monitor's thread. Where the file cannot be written that is said once.
class MetricsFile {
 public:
  /// @param path      "": no file, and nothing is counted
  /// @param wallTime  seconds since 1970
  MetricsFile(std::string path, std::string job, std::string node, std::function<double()> wallTime);

  bool wanted() const { return !path_.empty(); }
  void write(const Controller& controller, instrument::CallLog& calls);

 private:
  const std::string path_;
  const std::function<double()> wallTime_;
  report::JobMetrics metrics_;
  report::CollectiveDurations durations_;
  std::uint64_t nextRecord_ = 0;
  std::vector<CallRecord> fresh_;
  bool failed_ = false;
};

}  // namespace falcon::control
