// The job that is made slow again and again: the demo's, from its start to its end.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "demo/child_process.h"
#include "demo/evaluation.h"
#include "demo/job_commands.h"
#include "events/event_tail.h"

namespace falcon::injections {

/// Runs from its making to its destruction. Used by one thread.
class SlowJob {
 public:
  /// @param surroundings  its folder gets the job's files
  /// @param hear          gets every event once
  explicit SlowJob(demo::JobSurroundings surroundings, std::function<void(const demo::Said&)> hear = {});

  /// Reads what is new. Throws std::runtime_error once the job has ended, and Interrupted.
  void look();
  /// Looks until `done` or for so long; @return whether it was done
  bool lookUntil(const std::function<bool()>& done, double seconds);
  /// Looks for so long.
  void wait(double seconds) {
    lookUntil([] { return false; }, seconds);
  }
  /// For a job that shall end; @return whether it did within so long
  bool lookUntilItEnds(double seconds);
  /// Blocks until the job knows what is healthy. Throws when it does not within `seconds`.
  void waitForBaseline(double seconds);

  /// Since the last time they were taken away.
  const std::vector<demo::Said>& said() const { return said_; }
  std::vector<demo::Said> takeSaid() { return std::exchange(said_, {}); }
  std::vector<double> takeIterationEnds() { return std::exchange(iterationEnds_, {}); }

  bool ended() { return process_.exitCode().has_value(); }
  const demo::JobSurroundings& surroundings() const { return surroundings_; }
  std::string file(const std::string& name) const { return surroundings_.folder + "/" + name; }

 private:
  void read();

  const demo::JobSurroundings surroundings_;
  const std::function<void(const demo::Said&)> hear_;
  demo::ChildProcess process_;
  falcon::events::EventTail events_, iterations_;
  std::vector<demo::Said> said_;
  std::vector<double> iterationEnds_;
};

}  // namespace falcon::injections
