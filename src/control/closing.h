// Brings all processes of the job to be held: frozen wherever they are, or, where a communicator is the vendor's,
// drained to a consistent cut. The first step of whatever needs the job held.
#pragma once

#include <optional>
#include <set>
#include <string>

#include "control/drain.h"
#include "control/job_view.h"
#include "control/outbox.h"

namespace falcon::control {

/// A state machine of the controller. Who makes one opens the trap in the end, and watches the time.
class Closing {
 public:
  /// Orders all to close the trap. `job` and `outbox` outlive it. The vendor's kernels spin until all members have
  /// come, so no rank of such a job may be held at the entry of what another one has launched.
  Closing(const CloseTrap& order, const JobView& job, Outbox& outbox);

  static bool concerns(const Message& message);
  void handle(ProcessId from, const Message& message);
  void left(ProcessId process);
  /// Often: tells the members how far they have to go.
  void tick();
  bool isDone() const { return missing_.empty() && (!drain_ || drain_->reached()); }

  /// Who is not held, and why, as far as it is known: a sentence's beginning.
  std::string whatIsMissing() const;
  std::string namesOf(const std::set<ProcessId>& processes) const;

 private:
  void takeState(ProcessId from, const TrapState& state);
  void takeState(ProcessId from, const DrainState& state);
  void drain();
  void learnParts(ProcessId from, const DrainState& state);
  void tell(ProcessId process, bool all);

  CloseTrap order_;
  const JobView& job_;
  Outbox& outbox_;
  std::set<ProcessId> missing_;
  std::optional<Drain> drain_;
  std::uint64_t told_ = 1;         ///< the version that the members know of
  Counts toldTargets_;             ///< of it
  std::set<ProcessId> untold_;     ///< who has not been told the targets of all of its parts
  std::set<ProcessId> runningOn_;  ///< who is below a target
  std::set<ProcessId> working_;    ///< whose devices alone are not done
  std::map<ProcessId, std::set<DrainGate::Part>> parts_;
};

}  // namespace falcon::control
