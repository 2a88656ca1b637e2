#include "control/controller.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/format.h"
#include "control/call_window.h"
#include "instrument/blame.h"

namespace falcon::control {
namespace {

constexpr Nanoseconds profilingPause = 3s;  // after the first attempt; after others that many times as long
constexpr Nanoseconds longestProfilingPause = 5min;
constexpr Nanoseconds settledJob = 1s;  // nobody joined for so long
// What is slower by less and by nobody's fault may be a moment of the machine: severity 1 and half of 2.
constexpr double smallOnset = 1.25;

// Ids rise over the whole job, also from one controller to the next: every one begins where the wall clock is. A
// validation takes 1000.
std::uint64_t firstId(double wallTime) {
  return 1 + 1000 * static_cast<std::uint64_t>(std::max(0.0, wallTime * 1e3));
}

}  // namespace

Controller::Controller(const ControllerSettings& settings, const Clock& clock, std::function<double()> wallTime,
                       Outbox& outbox, EventSink& sink)
    : settings_(settings),
      clock_(clock),
      wallTime_(std::move(wallTime)),
      outbox_(outbox),
      sink_(sink),
      clocks_(settings.clockDomain, clock, outbox),
      succession_(clock, outbox, settings.present, settings.decisions),
      nextId_(firstId(wallTime_())),
      roles_(job_, clock, outbox, [this] { return nextId_++; }),
      mitigation_(
          {settings.mitigate, settings.deterministic, window(), settings.onsetThresholdPercent / 100,
           settings.places ? settings.places : &roles_, wallTime_},
          job_, clock, outbox, [this] { return nextId_++; }, [this](Event event) { emit(std::move(event)); }),
      detector_(instrument::ChangePointOptions{.threshold = settings.onsetThresholdPercent / 100}),
      budget_(settings.trapBudgetPercent, clock.now()) {
  phaseStarted_ = clock.now();
}

Controller::~Controller() = default;

void Controller::emit(Event event) {
  event.time = clock_.now();
  event.wallTime = wallTime_();
  event.iteration = iteration_;
  const bool tells = event.kind == EventKind::onset || event.kind == EventKind::worsening ||
                     event.kind == EventKind::easing || event.kind == EventKind::verdict;
  if (tells && event.beforeMilliseconds > 0 && event.afterMilliseconds > 0)
    event.severity = instrument::severityOf(
        event.kind == EventKind::onset ? event.beforeMilliseconds : healthyMilliseconds_, event.afterMilliseconds);
  sink_.add(event);
}

int Controller::activeCount(CulpritKind kind) const {
  return static_cast<int>(std::count_if(failSlows_.begin(), failSlows_.end(),
                                        [&](const FailSlow& each) { return each.culprit.kind == kind; }));
}

instrument::JobState Controller::state() const {
  using instrument::JobState;
  if (off_) return JobState::off;
  if (suspension_ && suspension_->state() == Suspension::State::held) return JobState::suspended;
  switch (phase_) {
    case Phase::learning:
      return JobState::starting;
    case Phase::profiling:
    case Phase::collecting:
      return JobState::profiling;
    case Phase::validating:
      return JobState::validating;
    case Phase::tracking:
      break;
  }
  return mitigation_.agreeing() ? JobState::mitigating : JobState::tracking;
}

// The lowest rank that delivers samples stands for the job: a synchronous job's ranks all take the same time.
std::optional<ProcessId> Controller::watched() const {
  std::optional<ProcessId> lowest;
  Rank lowestRank = std::numeric_limits<Rank>::max();
  for (const auto& [process, member] : job_.members()) {
    if (member.received == 0 || member.identity.jobRank >= lowestRank) continue;
    lowest = process;
    lowestRank = member.identity.jobRank;
  }
  return lowest;
}

// As watched() == process, of one that delivers, without a walk over all ranks for each message.
bool Controller::isWatched(ProcessId process) const {
  const auto placeOf = [](const auto& member) { return std::pair(member.second.identity.jobRank, member.first); };
  const auto own = job_.members().find(process);
  if (own == job_.members().end() || own->second.received == 0) return false;
  return std::none_of(job_.members().begin(), job_.members().end(),
                      [&](const auto& other) { return other.second.received > 0 && placeOf(other) < placeOf(*own); });
}

void Controller::handle(ProcessId from, const Message& message) {
  // Also when Falcon is off: who waits for a decision is not left waiting.
  if (const auto* recall = std::get_if<Recall>(&message)) return succession_.handle(from, *recall);
  if (off_) return;
  if (const auto* samples = std::get_if<Samples>(&message)) {
    job_.handle(from, *samples);
    if (!isWatched(from)) return;
    for (const Sample& sample : samples->samples)
      if (!sample.disturbed && !sample.provisional) onPattern(sample), onSample(sample);
  } else if (const auto* introduce = std::get_if<Introduce>(&message)) {
    job_.handle(from, *introduce);
    clocks_.handle(from, *introduce);
  } else if (const auto* formed = std::get_if<CommunicatorFormed>(&message)) {
    job_.handle(from, *formed);
  } else if (const auto* gone = std::get_if<CommunicatorGone>(&message)) {
    job_.handle(from, *gone);
  } else if (const auto* layout = std::get_if<PartKnown>(&message)) {
    job_.handle(from, *layout);
  } else if (const auto* restart = std::get_if<RestartKnown>(&message)) {
    job_.handle(from, *restart);
  } else if (const auto* memory = std::get_if<MemoryKnown>(&message)) {
    job_.handle(from, *memory);
  } else if (const auto* traffic = std::get_if<Traffic>(&message)) {
    job_.handle(from, *traffic);
  } else if (const auto* transfers = std::get_if<TransferProfile>(&message)) {
    onTransfers(from, *transfers);
  } else if (const auto* calls = std::get_if<CallTimes>(&message)) {
    onCalls(from, *calls);
  } else if (const auto* answer = std::get_if<ClockAnswer>(&message)) {
    clocks_.handle(from, *answer);
  } else if (const auto* counter = std::get_if<Counter>(&message)) {
    mitigation_.handle(from, *counter);
    roles_.handle(from, *counter);
  } else if (const auto* vote = std::get_if<Vote>(&message)) {
    mitigation_.handle(from, *vote);
    roles_.handle(from, *vote);
  } else if (const auto* reshaped = std::get_if<Reshaped>(&message)) {
    roles_.handle(from, *reshaped);
  } else if (std::holds_alternative<RequestOff>(message)) {
    switchOff();
  } else if (const auto* ask = std::get_if<AskSuspend>(&message)) {
    onSuspend({{from, ask->request}, ask->limitSeconds, ask->attempt});
  } else if (const auto* resume = std::get_if<AskResume>(&message)) {
    onResume(from, resume->request);
  } else if (const auto* examine = std::get_if<AskExamination>(&message)) {
    onExamine({from, examine->request});
  } else if (std::holds_alternative<Leaving>(message)) {
    leaving_.insert(from);
  } else if (suspension_ && Closing::concerns(message)) {
    suspension_->handle(from, message);
  } else if (const auto* results = std::get_if<LinkResults>(&message);
             results && probe_ && probe_->waves.front().run == results->wave) {
    onProbe(*results);
  } else if (validation_) {
    validation_->handle(from, message);
  }
}

void Controller::left(ProcessId process) {
  succession_.left(process);
  const bool died = leaving_.erase(process) == 0;
  if (suspension_) suspension_->left(process, died);  // names it
  job_.left(process);
  clocks_.left(process);
  baselineDue_.erase(process);
  transfersDue_.erase(process);
  if (validation_) validation_->left(process, died);
  mitigation_.left(process);
  roles_.left(process);
}

// Members that are off obey nothing any more: what they wait for is decided before.
void Controller::switchOff() {
  handOver();
  off_ = true;
  outbox_.toAll(SwitchOff{});
  emit({.kind = EventKind::switchedOff,
        .text = "Falcon was switched off in this job; what it had changed stays as it is"});
}

void Controller::handOver() {
  const std::string why = "the controller has changed, or Falcon was switched off";
  mitigation_.abandon();
  if (validation_) validation_->abandon();
  validation_.reset();
  giveUpExamination(why);
  giveUpSuspension(why);
}

void Controller::end(std::int64_t iterations, bool inherited) {
  handOver();
  if ((!announced_ && !inherited) || off_) return;
  if (minorNotSaid_) emit(*std::exchange(minorNotSaid_, std::nullopt));
  emit({.kind = EventKind::jobEnded,
        .text = fmt::format("the job ends after {} iterations; {} fail-slow{} named{}", iterations,
                            named_ == 0 ? "no" : std::to_string(named_), named_ == 1 ? " was" : "s were",
                            announced_ ? "" : " since its controller died")});
}

void Controller::tick() {
  succession_.tick();
  if (off_) return;
  clocks_.tick();
  announce();
  if (!tickSuspension()) return;
  startExamination();
  switch (phase_) {
    case Phase::learning:
      return learn();
    case Phase::tracking:
      return track();
    case Phase::profiling:
      return endProfiling();
    case Phase::collecting:
      return collect();
    case Phase::validating:
      validation_->tick();
      if (validation_->finished()) conclude();
      return;
  }
}

void Controller::announce() {
  if (announced_ || settings_.successor) return;
  if (job_.members().size() != membersSeen_ || !job_.isComplete()) {
    membersSeen_ = job_.members().size();
    membersSince_ = clock_.now();
  }
  // A job that trains has started, even where ranks without Falcon keep it from being complete.
  if (clock_.now() - membersSince_ < settledJob && !watched()) return;
  announced_ = true;
  const auto counted = [](std::size_t count, const char* what) {
    return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
  };
  emit({.kind = EventKind::jobStarted,
        .text = fmt::format("the job has {} and {}", counted(job_.members().size(), "rank"),
                            counted(job_.communicators().size(), "communicator"))});
}

void Controller::onTransfers(ProcessId from, const TransferProfile& profile) {
  const auto found = job_.members().find(from);
  if (found == job_.members().end()) return;
  MemberView& member = found->second;
  const auto before = mark_.find(from);
  const TransferView view{profile.sums, member.received - (before == mark_.end() ? 0 : before->second), profile.net};
  transfersDue_.erase(from);
  (baselineDue_.erase(from) > 0 ? member.healthyTransfers : member.transfers) = view;
}

// The whole job's calls are gathered here: what all of them may take is shared out.
SetProfiling Controller::profilingOrder() const {
  constexpr std::size_t calls = (std::size_t{64} << 20) / sizeof(instrument::TimelineCall) / 2;  // healthy and now
  const std::size_t share = calls / std::max<std::size_t>(1, job_.members().size());
  return {true, static_cast<std::uint32_t>(std::min(share, CallWindow::mostCalls))};
}

// Comes before the timing of the same member.
void Controller::onCalls(ProcessId from, const CallTimes& times) {
  const auto found = job_.members().find(from);
  if (found == job_.members().end() || times.calls.size() > CallWindow::mostCalls) return;
  const bool isBaseline = baselineDue_.contains(from);
  auto& calls = isBaseline ? found->second.healthyCalls : found->second.calls;
  (isBaseline ? found->second.healthyCallsOnJobsClock : found->second.callsOnJobsClock) = times.onHostsClock;
  calls.clear();
  for (const TimedCall& call : times.calls) {
    if (call.operation >= operationCount) continue;
    const Nanoseconds enter = clocks_.toOurs(from, Nanoseconds(call.enter));
    calls.push_back({call.communicator, static_cast<Operation>(call.operation), call.peer, call.sequence, call.bytes,
                     enter, enter + Nanoseconds(std::max<std::int64_t>(call.duration, 0))});
  }
  // The log has them by their ends.
  std::stable_sort(calls.begin(), calls.end(), [](const auto& a, const auto& b) { return a.enter < b.enter; });
}

void Controller::onSample(const Sample& sample) {
  iteration_ = sample.index;
  const int pace = pace_.generation();
  const auto seconds = pace_.add(sample.seconds, sample.work);
  if (pace_.generation() != pace) onOtherMeasure();
  if (!seconds) return;
  ++detectorSamples_;
  if (slow_ || !failSlows_.empty()) {
    const double lost = rebalance::accumulatedLoss(1, *seconds, healthyMilliseconds_ * 1e-3);
    lossSeconds_ += lost;
    for (FailSlow& each : failSlows_) each.lossSeconds += lost;
  }
  const auto change = detector_.add(*seconds * 1e3);
  followMinor(change);
  using instrument::ChangeKind;
  if (!change || change->kind == ChangeKind::minor || change->kind == ChangeKind::minorOver) return noticeFaster();
  if (becameFaster_ && detector_.slow()) keepFormerBaseline();
  if (isBackFromAMoment(*change)) return forgetTheMoment();
  if (phase_ != Phase::learning) onChange(*change);
}

Event Controller::changed(EventKind kind, double before, double after) {
  return {.kind = kind,
          .beforeMilliseconds = before,
          .afterMilliseconds = after,
          .text = fmt::format("iterations went from {:.1f} ms to {:.1f} ms", before, after)};
}

void Controller::onChange(const instrument::Change& change) {
  using instrument::ChangeKind;
  const bool slower = change.kind == ChangeKind::onset || change.kind == ChangeKind::worsening;
  currentMilliseconds_ = change.after;
  changedAt_ = change.sample;
  eased_ = !slower;
  if (!slower && !slow_) return;  // the end of something that was never said
  // What the detector learnt to be healthy was slow already.
  const ChangeKind kind = !slowFromTheStart_ ? change.kind : slower ? ChangeKind::worsening : ChangeKind::easing;
  if (change.kind == ChangeKind::relief) slow_ = false;
  Event event = changed(kind == ChangeKind::onset       ? EventKind::onset
                        : kind == ChangeKind::worsening ? EventKind::worsening
                        : kind == ChangeKind::easing    ? EventKind::easing
                                                        : EventKind::relief,
                        change.before, change.after);
  event.confidence = change.confidence;
  if (kind == ChangeKind::relief) return onRelief(event);
  if (kind == ChangeKind::onset && failSlows_.empty() && change.after < smallOnset * change.before) {
    onsetNotSaid_ = event;
  } else if (slower || !onsetNotSaid_) {
    sayOnset();
    emit(event);
  }
  if (!slower) {
    for (FailSlow& each : failSlows_) each.eased = true;
    return;
  }
  if (!slow_ && !slowFromTheStart_) {
    if (failSlows_.empty()) healthyMilliseconds_ = change.before;
    lossSeconds_ =
        rebalance::accumulatedLoss(detectorSamples_ - change.sample, change.after * 1e-3, change.before * 1e-3);
  }
  slow_ = onsetOpen_ = true;
  minorProfile_ = false;
  attempts_ = traps_ = 0;
  if (phase_ == Phase::tracking && !mitigation_.agreeing()) startProfiling();
}

void Controller::sayOnset() {
  if (auto event = std::exchange(onsetNotSaid_, std::nullopt)) emit(std::move(*event));
}

// Relief of what nobody mitigated shows in the iteration time. Other culprits have a figure of their own to watch.
void Controller::onRelief(Event event) {
  onsetOpen_ = false;
  if (phase_ == Phase::profiling || phase_ == Phase::collecting) {
    if (phase_ == Phase::profiling) outbox_.toAll(SetProfiling{false});
    phase_ = Phase::tracking;
    phaseStarted_ = clock_.now();
  }
  std::vector<Culprit> relieved;
  for (const FailSlow& each : failSlows_)
    if (!each.masked) relieved.push_back(each.culprit);
  std::erase_if(failSlows_, [](const FailSlow& each) { return !each.masked; });
  if (std::exchange(onsetNotSaid_, std::nullopt)) return;  // over before it was said
  if (relieved.empty()) return emit(event);
  for (const Culprit& culprit : relieved) {
    event.culprit = culprit;
    emit(event);
    mitigation_.relieved(culprit);
  }
}

void Controller::track() {
  watchRelief();
  if (compareWithStored() || askPeers()) return;
  refineBaseline();
  const double healthy = healthyMilliseconds_ * 1e-3, current = currentMilliseconds_ * 1e-3;
  if (mitigation_.tick(failSlows_, healthy, current, !relearning_) == Mitigation::Progress::changed) {
    rebase();
  }
  if (mitigation_.agreeing()) return;
  // With a culprit known, the old baseline is the only healthy one there is.
  if (relearnDue_ && failSlows_.empty()) {
    relearnDue_ = false;
    learnFrom_ = job_.receivedNow();
    periodKnown_ = false;
    phase_ = Phase::learning;
    return;
  }
  const Nanoseconds now = clock_.now();
  if (onsetOpen_ && now - phaseStarted_ > pauseBeforeLooking() &&
      (!settings_.validate || budget_.allows(now, traps_ == 0)))
    return startProfiling();
  if (profileMinor()) return;
  if (relearning_) {
    if (detector_.healthyMilliseconds() <= 0) return;
    relearning_ = false;
    currentMilliseconds_ = detector_.healthyMilliseconds();
    lookAgain_ = lookAgain_ || !failSlows_.empty();
  }
  if (!lookAgain_ || isEasing()) return;
  lookAgain_ = false;
  if (!isSlow()) return;
  startProfiling();
  quiet_ = true;
}

// Who was hidden by noise in the first looks is looked for as long as the job is slow, less and less often.
Nanoseconds Controller::pauseBeforeLooking() const {
  if (attempts_ < attemptsPerOnset) return profilingPause * std::max(1, attempts_);
  return std::min(longestProfilingPause, profilingPause * (1 << std::min(attempts_, 10)));
}

// The newest iterations are of before and after, and the level that they go to is not known well.
bool Controller::isEasing() const {
  return eased_ && detectorSamples_ - changedAt_ < settings_.baselineIterations;
}

bool Controller::isSlow() const {
  return currentMilliseconds_ >= healthyMilliseconds_ * onsetGrowth();
}

// The plan changed the iteration time on purpose: the detector learns the new level without a word.
void Controller::rebase() {
  detector_.rebase();
  detectorSamples_ = changedAt_ = fasterNotBefore_ = 0;
  relearning_ = true;
  slow_ = onsetOpen_ = eased_ = becameFaster_ = fasterForAMoment_ = false;
  onsetNotSaid_.reset();
  lastProbe_ = clock_.now();
  for (FailSlow& each : failSlows_) each.masked = true;
}

}  // namespace falcon::control
