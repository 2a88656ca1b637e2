// The controller's state machine: tracking > profiling > validation > mitigation, and back on relief.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "base/clock.h"
#include "base/event.h"
#include "control/decisions.h"
#include "control/fail_slow.h"
#include "control/job_view.h"
#include "control/mitigation.h"
#include "control/outbox.h"
#include "control/trap_budget.h"
#include "control/validation.h"
#include "instrument/call_log.h"
#include "instrument/change_point.h"

namespace falcon::control {

struct ControllerSettings {
  bool validate = true;
  MitigateMode mitigate = MitigateMode::advise;
  double trapBudgetPercent = 0.5;
  Nanoseconds trapTimeout = 10s;
  double onsetThresholdPercent = 10;
  bool deterministic = false;
  /// Another process was the controller before: the job's start has been said, and often this is its end.
  bool successor = false;
  int baselineIterations = 12;
  int profilingIterations = 4;
};

/// Used by one thread, the monitor of the controlling process. Side effects go through the outbox and the sink only.
/// controller.cc: the job, the baseline, onsets. controller_diagnosis.cc: profiling and validation.
/// controller_relief.cc: who has recovered.
class Controller {
 public:
  Controller(const ControllerSettings& settings, const Clock& clock, std::function<double()> wallTime, Outbox& outbox,
             EventSink& sink);
  ~Controller();

  void handle(ProcessId from, const Message& message);
  void left(ProcessId process);
  void tick();
  /// Another process is the controller now: nothing here stays undecided or held. What is in force stays; the members
  /// tell the new one.
  void handOver();
  /// This process leaves the job in order.
  void end();

  instrument::JobState state() const;
  /// Fail-slows known and not relieved.
  int activeCount() const { return static_cast<int>(failSlows_.size()); }
  int activeCount(CulpritKind kind) const;
  const Mitigation::Counts& mitigations() const { return mitigation_.counts(); }
  bool isOff() const { return off_; }

 private:
  /// collecting: profiling is over, the members' timing is on its way.
  enum class Phase { learning, tracking, profiling, collecting, validating };

  void emit(Event event);
  void announce();
  void learn();
  void takeBaseline(ProcessId watched);
  void track();
  void onSample(const Sample& sample);
  void onChange(const instrument::Change& change);
  void onRelief(Event event);
  void onTransfers(ProcessId from, const TransferProfile& profile);
  void switchOff();
  void rebase();
  std::optional<ProcessId> watched() const;
  std::size_t window() const { return static_cast<std::size_t>(settings_.profilingIterations); }

  void startProfiling();
  void endProfiling();
  void collect();
  void suspect();
  void validate(const instrument::Suspicion& suspects);
  void conclude();
  void name(const Culprit& culprit, const Validation::Outcome& outcome);
  void measureFigures(FailSlow& failSlow, const Validation::Outcome& outcome) const;
  std::vector<Culprit> culprits() const;

  void watchRelief();
  bool hasRecovered(FailSlow& failSlow);
  void probe(FailSlow& failSlow);
  void onProbe(const LinkResults& results);
  FailSlow* find(std::uint64_t id);
  void relieve(std::uint64_t id);

  const ControllerSettings settings_;
  const Clock& clock_;
  const std::function<double()> wallTime_;
  Outbox& outbox_;
  EventSink& sink_;
  JobView job_;
  std::uint64_t nextId_;  ///< of traps, waves, agreements and fail-slows
  Mitigation mitigation_;
  Phase phase_ = Phase::learning;
  bool off_ = false;

  std::size_t membersSeen_ = 0;  ///< when they were counted last
  Nanoseconds membersSince_{0};
  bool announced_ = false;
  bool periodKnown_ = false;
  std::map<ProcessId, std::uint64_t> mark_;  ///< samples received when profiling began
  std::set<ProcessId> baselineDue_;          ///< whose next timing belongs to the baseline
  std::set<ProcessId> transfersDue_;         ///< whose timing is on its way
  Nanoseconds phaseStarted_{0};

  instrument::ChangePointDetector detector_;
  std::int64_t detectorSamples_ = 0;  ///< since its last rebase
  std::int64_t iteration_ = -1;       ///< of the watched rank
  double healthyMilliseconds_ = 0;    ///< of the watched rank
  double currentMilliseconds_ = 0;    ///< level after the last change
  bool slow_ = false;                 ///< an onset was said, and no relief since
  bool onsetOpen_ = false;            ///< its cause is not known (yet)
  bool relearning_ = false;           ///< a plan came into force, and the detector does not know the new level yet
  bool quiet_ = false;  ///< the profiling in progress follows a plan: is anything slow that no known culprit explains?
  int attempts_ = 0;    ///< profilings of the open onset
  double lossSeconds_ = 0;  ///< since the onset
  TrapBudget budget_;
  std::unique_ptr<Validation> validation_;
  std::map<Link, double> linkRates_;

  std::vector<FailSlow> failSlows_;
  int named_ = 0;
  std::map<std::uint64_t, std::uint64_t> probes_;  ///< wave -> id of the fail-slow
  Nanoseconds lastProbe_{0};
};

}  // namespace falcon::control
