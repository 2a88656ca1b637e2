// The controller's state machine: tracking > profiling > validation > mitigation, and back on relief.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "base/clock.h"
#include "base/event.h"
#include "control/back_off.h"
#include "control/clock_book.h"
#include "control/decisions.h"
#include "control/fail_slow.h"
#include "control/job_view.h"
#include "control/mitigation.h"
#include "control/outbox.h"
#include "control/place_exchange.h"
#include "control/request_id.h"
#include "control/role_exchange.h"
#include "control/stored_baseline.h"
#include "control/succession.h"
#include "control/suspension.h"
#include "control/trap_budget.h"
#include "control/validation.h"
#include "instrument/call_log.h"
#include "instrument/change_point.h"
#include "instrument/work_pace.h"

namespace falcon::control {

struct ControllerSettings {
  bool validate = true;
  MitigateMode mitigate = MitigateMode::advise;
  double trapBudgetPercent = 0.5;
  Nanoseconds trapTimeout = 10s;
  Nanoseconds trapEntry = 30s;  ///< until everybody is held
  double onsetThresholdPercent = 10;
  bool deterministic = false;
  /// Another process was the controller before: the job's start has been said, and often this is its end.
  bool successor = false;
  std::string clockDomain;  ///< of this process, as members say theirs (Introduce)
  /// The healthy baseline that an earlier run of this job left, and where this run's goes; not called: nowhere.
  std::optional<StoredBaseline> stored;
  std::function<void(const StoredBaseline&)> keep;
  /// Who is on the bus now, and what this process knows of agreements: for what the controller before left undecided.
  Succession::Processes present = [] { return std::vector<ProcessId>(); };
  const DecisionBook* decisions = nullptr;
  /// Outlives the controller; null: ranks exchange their roles, where they can.
  PlaceExchange* places = nullptr;
  int baselineIterations = 12;
  int profilingIterations = 4;
};

/// Used by one thread, the monitor of the controlling process. Side effects go through the outbox and the sink only.
/// controller.cc: the job, onsets. controller_baseline.cc: what is healthy. controller_diagnosis.cc: profiling and
/// validation. controller_relief.cc: who has recovered. controller_suspension.cc: held because somebody asked.
/// controller_examination.cc: tested because somebody asked. controller_minor.cc: a little slower, for long.
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
  /// The controller before died while it held the job, for so long: its last word is said here.
  void inherit(bool asked, Nanoseconds held);
  /// This process leaves the job in order, after so many iterations as it shows. `inherited`: a controller before has
  /// said the job's start, and died before it could say its end.
  void end(std::int64_t iterations, bool inherited = false);

  instrument::JobState state() const;
  /// Fail-slows known and not relieved.
  int activeCount() const { return static_cast<int>(failSlows_.size()); }
  int activeCount(CulpritKind kind) const;
  const Mitigation::Counts& mitigations() const { return mitigation_.counts(); }
  const PlanState& plans() const { return mitigation_.planState(); }
  /// A minor slowness was said and is not over.
  bool isMinor() const { return minorSaid_; }
  bool isOff() const { return off_; }

 private:
  static constexpr int attemptsPerOnset = 3;  ///< looks of which is said that they found nobody

  /// Probes of one slow link and of the healthy ones beside it, a wave at a time.
  struct LinkProbe {
    std::uint64_t failSlow = 0;
    std::deque<validate::Wave> waves;  ///< the first one runs
    std::map<Link, double> rates;      ///< so far, bytes per second
    std::size_t missing = 0;           ///< links of the first wave whose receiving end has not answered
  };
  /// What the kernel's account of the hosts explains of an onset.
  struct ByHosts {
    std::vector<diagnose::HostExplanation> culprits{};  ///< hosts whose processors others take
    bool isAll = false;                                 ///< hosts explain all of it
    std::string ownTime{};                              ///< all ranks' own time, in words; empty: not
  };
  /// collecting: profiling is over, the members' timing is on its way.
  enum class Phase { learning, tracking, profiling, collecting, validating };

  void emit(Event event);
  void announce();
  void learn();
  bool haveAllSince(const std::map<ProcessId, std::uint64_t>& mark, int iterations) const;
  void takeBaseline(ProcessId watched);
  void refineBaseline();
  void noticeFaster();
  bool isFaster(ProcessId watched) const;
  /// The newest samples' iteration times with the usual work, in milliseconds.
  std::vector<double> judgedMilliseconds(ProcessId process, std::size_t count) const;
  void keepFormerBaseline();
  bool isBackFromAMoment(const instrument::Change& change) const;
  void forgetTheMoment();
  bool compareWithStored();
  bool askPeers();
  diagnose::Suspicion byPeers() const;
  void keepBaseline();
  void beginSlow(double beforeSeconds, Event event);
  void track();
  bool isSlow() const;
  bool isEasing() const;
  Nanoseconds pauseBeforeLooking() const;
  void onSample(const Sample& sample);
  void onPattern(const Sample& sample);
  void onOtherMeasure();
  void onChange(const instrument::Change& change);
  static Event changed(EventKind kind, double before, double after);
  void onRelief(Event event);
  void onTransfers(ProcessId from, const TransferProfile& profile);
  void onCalls(ProcessId from, const CallTimes& times);
  SetProfiling profilingOrder() const;
  void switchOff();
  void rebase();
  std::optional<ProcessId> watched() const;
  bool isWatched(ProcessId process) const;
  /// Half of what a change is: less of a healthy iteration is nobody's fault.
  /// Times that iterations take longer, from which on they are slow.
  double onsetGrowth() const { return 1 + settings_.onsetThresholdPercent / 100; }
  double leastShare() const { return settings_.onsetThresholdPercent / 200; }
  std::size_t window() const { return static_cast<std::size_t>(settings_.profilingIterations); }

  void startProfiling();
  void endProfiling();
  void collect();
  void suspect();
  ByHosts explainedByHosts();
  bool waitsWhetherItLasts();
  void sayOnset();
  void waitForBackOff(const diagnose::Suspicion& suspects);
  void validate(const diagnose::Suspicion& suspects);
  void conclude();
  void name(const Culprit& culprit, const Validation::Outcome& outcome);
  void name(const diagnose::HostExplanation& host);
  void name(const std::vector<diagnose::HostExplanation>& hosts);
  FailSlow newFailSlow(const Culprit& culprit);
  std::string whereabouts(const Culprit& culprit) const;
  bool looksSlow(const Link& link, const Validation::Outcome& outcome) const;
  void measureFigures(FailSlow& failSlow, const Validation::Outcome& outcome) const;
  LinkRelief reliefOf(const Culprit& culprit, const Validation::Outcome& outcome) const;
  std::vector<Culprit> culprits() const;

  void onSuspend(const SuspendRequest& asked);
  void onResume(ProcessId from, std::uint64_t request);
  void noticeItsEnd();
  void startSuspension();
  bool tickSuspension();
  void saySuspended();
  void endSuspension();
  void giveUpSuspension(const std::string& why);
  void learnAnew();

  void followMinor(const std::optional<instrument::Change>& change);
  void beginMinor(const instrument::Change& change);
  bool profileMinor();
  void sayMinor();
  void endMinor(const std::string& why);
  int iterationsToProfile() const;

  void onExamine(const RequestId& asked);
  void startExamination();
  void endExamination();
  void refuseExamination(const RequestId& asked, const std::string& why);
  void giveUpExamination(const std::string& why);

  void watchRelief();
  bool isGone(const Culprit& culprit) const;
  bool hasRecovered(FailSlow& failSlow);
  bool hostHasRecovered(FailSlow& failSlow);
  void probe(FailSlow& failSlow);
  void sendProbe();
  void onProbe(const LinkResults& results);
  FailSlow* find(std::uint64_t id);
  std::vector<FailSlow>::iterator find(const Culprit& culprit);
  void relieve(std::uint64_t id, const char* how = "is as fast as before");
  /// What an iteration takes just now.
  double measuredMilliseconds() const;

  const ControllerSettings settings_;
  const Clock& clock_;
  const std::function<double()> wallTime_;
  Outbox& outbox_;
  EventSink& sink_;
  JobView job_;
  ClockBook clocks_;
  Succession succession_;
  std::uint64_t nextId_;  ///< of traps, waves, agreements and fail-slows
  RoleExchange roles_;
  Mitigation mitigation_;
  Phase phase_ = Phase::learning;
  bool off_ = false;

  std::size_t membersSeen_ = 0;  ///< when they were counted last
  Nanoseconds membersSince_{0};
  bool announced_ = false;
  bool periodKnown_ = false;
  std::map<ProcessId, std::uint64_t> mark_;  ///< samples received when profiling began
  std::set<ProcessId> baselineDue_;          ///< whose next timing belongs to the baseline
  /// Samples received before a baseline that is still short; nothing: it is not to be refined.
  std::optional<std::map<ProcessId, std::uint64_t>> refinedFrom_;
  bool compared_ = false;    ///< with the stored one
  bool compareDue_ = false;  ///< the baseline is taken, and not yet compared with the stored one
  /// Suspects of a job that has nothing faster to be compared with, as long as they are looked at again.
  std::optional<diagnose::Suspicion> byPeers_;
  int peerRounds_ = 0;
  std::map<ProcessId, std::uint64_t> peersSince_;  ///< samples received before the newest look
  std::set<Rank> oneStretch_;         ///< whose delay lies in one stretch of code, by the last chain of waiting
  std::set<ProcessId> transfersDue_;  ///< whose timing is on its way
  Nanoseconds phaseStarted_{0};

  instrument::WorkPace pace_;
  instrument::ChangePointDetector detector_;
  std::int64_t detectorSamples_ = 0;              ///< since its last rebase
  std::int64_t changedAt_ = 0;                    ///< where of them the newest change began
  std::int64_t iteration_ = -1;                   ///< of the watched rank
  double healthyMilliseconds_ = 0;                ///< of the watched rank
  double currentMilliseconds_ = 0;                ///< level after the last change
  bool slow_ = false;                             ///< an onset was said, and no relief since
  bool onsetOpen_ = false;                        ///< its cause is not known (yet)
  std::optional<Event> onsetNotSaid_;             ///< a small one: it may be over before anybody stands out
  std::optional<Event> minorNotSaid_;             ///< to be profiled first
  bool minorProfile_ = false;                     ///< the profiling in progress is for that
  int minorProfiles_ = 0;                         ///< of it, that told of something else
  bool minorSaid_ = false;                        ///< and it is not over
  bool slowFromTheStart_ = false;                 ///< the detector takes a slow pace for the healthy one
  std::uint32_t pattern_ = 0, calls_ = 0;         ///< of the watched rank's last sample
  std::optional<ProcessId> patternOf_;            ///< whose they are
  bool relearnDue_ = false;                       ///< the baseline is of a pattern or of a pace that is gone
  bool becameFaster_ = false;                     ///< that is why it is learnt anew
  std::int64_t fasterNotBefore_ = 0;              ///< detectorSamples_ until which it is not looked for
  bool fasterForAMoment_ = false;                 ///< and that is over: no baseline of it was taken
  double baselineMilliseconds_ = 0;               ///< the detector's level when the baseline was taken
  std::map<ProcessId, std::uint64_t> learnFrom_;  ///< samples received before what the baseline is to be taken of
  bool relearning_ = false;  ///< a plan came into force, and the detector does not know the new level yet
  bool eased_ = false;       ///< the newest change was for the better
  bool lookAgain_ = false;   ///< a plan came into force, or a culprit has recovered: what it hid may be left
  bool quiet_ = false;      ///< the profiling in progress is for that: is anything slow that no known culprit explains?
  int attempts_ = 0;        ///< profilings of the open onset
  int traps_ = 0;           ///< validations of the open onset
  double lossSeconds_ = 0;  ///< since the onset
  TrapBudget budget_;
  BackOff backOff_;
  bool backOffSaid_ = false;    ///< that a suspicion waits for its next test
  diagnose::Suspicion tested_;  ///< by the validation in progress, or by the last one
  std::unique_ptr<Validation> validation_;
  std::map<Link, double> linkRates_;
  std::set<Link> linksWaiting_;  ///< that the last validation had no time for
  std::unique_ptr<Suspension> suspension_;
  std::optional<SuspendRequest> suspendNext_;  ///< asked for while a validation holds the job
  bool suspendedSaid_ = false;
  std::optional<RequestId> examineNext_;  ///< asked for while something else is measured
  std::optional<RequestId> examining_;    ///< whom the validation in progress is for; else the job's
  Phase examinedIn_ = Phase::tracking;    ///< the phase that it interrupted
  std::set<ProcessId> leaving_;           ///< who end in order

  std::vector<FailSlow> failSlows_;
  int named_ = 0;
  std::optional<LinkProbe> probe_;  ///< in progress
  Nanoseconds lastProbe_{0};
};

}  // namespace falcon::control
