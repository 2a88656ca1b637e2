// The controller's office in one process: the controller itself, while the bus says that this process is it, and what
// it leaves outside: events, metrics, the job's state, a baseline for the next run.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/clock.h"
#include "bootstrap/bus.h"
#include "control/controller.h"
#include "control/decision_book.h"
#include "control/event_file.h"
#include "control/job_files.h"
#include "control/metrics_file.h"
#include "control/outbox.h"

namespace falcon::control {

/// Which processes have one clock: CLOCK_MONOTONIC is the same for all since a machine was booted, but for those in a
/// time namespace.
std::string clockDomain();

/// Used by the monitor's thread alone. All that it is given outlives it.
class Office {
 public:
  Office(std::string jobName, bootstrap::Bus& bus, const Clock& clock, JobFiles& files, DecisionBook& decisions);

  /// Becomes the controller, or stops being it, as the bus says.
  void take();
  /// Null while another process is it.
  Controller* controller() const { return controller_.get(); }
  /// To the log's header, the members and the metrics file; at a change, and once a second.
  void showState();
  /// The job ends here in order.
  void end();

 private:
  ControllerSettings settings();
  void showPlan();
  std::string shownName() const;

  const std::string jobName_;
  bootstrap::Bus& bus_;
  const Clock& clock_;
  JobFiles& files_;
  DecisionBook& decisions_;
  const std::unique_ptr<Outbox> outbox_;
  std::unique_ptr<EventFile> events_;
  std::unique_ptr<Controller> controller_;
  MetricsFile metrics_;
  Nanoseconds shown_{0};
  instrument::JobState shownState_ = instrument::JobState::starting;
  Nanoseconds since_{0};
  std::uint64_t planShown_ = 0;  ///< its version
  bool baselineLost_ = false;    ///< it could not be kept, and that was said
  bool served_ = false;          ///< this process has been the controller before
  bool followed_ = false;        ///< another one has
};

}  // namespace falcon::control
