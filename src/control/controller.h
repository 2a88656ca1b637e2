// The controller's state machine: tracking > profiling > validation > mitigation, and back on relief.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "base/event.h"
#include "control/agreement.h"
#include "control/decisions.h"
#include "control/job_view.h"
#include "control/outbox.h"
#include "control/relief_watch.h"
#include "control/trap_budget.h"
#include "control/validation.h"
#include "instrument/call_log.h"
#include "instrument/change_point.h"

namespace falcon::control {

enum class MitigateMode { off, advise, automatic };

struct ControllerSettings {
  bool validate = true;
  MitigateMode mitigate = MitigateMode::advise;
  double trapBudgetPercent = 0.5;
  Nanoseconds trapTimeout = 10s;
  double onsetThresholdPercent = 10;
  bool deterministic = false;
  int baselineIterations = 12;
  int profilingIterations = 4;
};

/// Used by one thread, the monitor of the controlling process. Side effects go through the outbox and the sink only.
class Controller {
 public:
  Controller(const ControllerSettings& settings, const Clock& clock, std::function<double()> wallTime, Outbox& outbox,
             EventSink& sink);
  ~Controller();

  void handle(ProcessId from, const Message& message);
  void left(ProcessId process);
  void tick();

  instrument::JobState state() const;
  /// Fail-slows known and not relieved.
  int activeCount() const { return static_cast<int>(active_.size()); }
  int activeCount(CulpritKind kind) const;
  int mitigationsApplied() const { return applied_; }
  int mitigationsRefused() const { return refused_; }
  bool isOff() const { return off_; }

 private:
  /// A fail-slow that is known.
  struct Active {
    Culprit culprit;
    double healthyMilliseconds = 0;
    double slowMilliseconds = 0;
    Remedy remedy;  ///< in force when kind != none and applied
    bool applied = false;
    bool advised = false;
    double slowFigure = 0;  ///< seconds a micro-batch, or seconds a byte: what ReliefWatch compares
    double healthyFigure = 0;
    std::optional<ReliefWatch> watch;
    std::uint64_t watchedSamples = 0;  ///< of the culprit, already seen by the watch
    bool relieved = false;             ///< the undo is under way
  };
  enum class Phase { learning, tracking, profiling, validating, agreeing };

  void emit(Event event);
  void learn();
  void onSample(const Sample& sample);
  void onChange(const instrument::Change& change);
  void startProfiling();
  void endProfiling();
  void conclude();
  void considerRemedies();
  void startAgreement(std::size_t activeIndex, Remedy remedy, bool undo);
  void endAgreement();
  void watchRelief();
  void probe(Active& active);
  void onProbe(const LinkResults& results);
  void relieve(std::size_t activeIndex);
  void rebase();
  std::optional<ProcessId> watched() const;

  const ControllerSettings settings_;
  const Clock& clock_;
  const std::function<double()> wallTime_;
  Outbox& outbox_;
  EventSink& sink_;
  JobView job_;
  Phase phase_ = Phase::learning;
  bool off_ = false;
  bool periodKnown_ = false;

  instrument::ChangePointDetector detector_;
  std::int64_t iteration_ = -1;     ///< of the watched rank
  double healthyMilliseconds_ = 0;  ///< baseline of the watched rank
  double currentMilliseconds_ = 0;  ///< level after the last change
  bool onsetOpen_ = false;          ///< slow, cause not known (yet)
  int attempts_ = 0;                ///< validations of the open onset
  std::map<ProcessId, std::uint64_t> mark_;
  Nanoseconds phaseStarted_{0};
  TrapBudget budget_;
  std::uint64_t nextId_ = 1;

  std::unique_ptr<Validation> validation_;
  std::vector<std::unique_ptr<Agreement>> agreements_;
  std::size_t agreeingFor_ = 0;
  bool undoing_ = false;
  Remedy agreedRemedy_;
  std::vector<Active> active_;
  std::map<Link, double> linkRates_;
  std::map<std::uint64_t, std::size_t> probes_;  ///< wave id -> index in active_
  Nanoseconds lastProbe_{0};
  int applied_ = 0;
  int refused_ = 0;
};

}  // namespace falcon::control
