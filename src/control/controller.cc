#include "control/controller.h"

#include <algorithm>
#include <limits>

#include "base/log.h"

namespace falcon::control {
namespace {

constexpr int healthySamplesForRelief = 4;
constexpr Nanoseconds probeInterval = 2s;
constexpr int attemptsPerOnset = 3;

}  // namespace

Controller::Controller(const ControllerSettings& settings, const Clock& clock, std::function<double()> wallTime,
                       Outbox& outbox, EventSink& sink)
    : settings_(settings),
      clock_(clock),
      wallTime_(std::move(wallTime)),
      outbox_(outbox),
      sink_(sink),
      detector_(instrument::ChangePointOptions{.threshold = settings.onsetThresholdPercent / 100}),
      budget_(settings.trapBudgetPercent, clock.now()) {}

Controller::~Controller() = default;

void Controller::emit(Event event) {
  event.time = clock_.now();
  event.wallTime = wallTime_();
  event.iteration = iteration_;
  sink_.add(event);
}

int Controller::activeCount(CulpritKind kind) const {
  return static_cast<int>(
      std::count_if(active_.begin(), active_.end(), [&](const Active& a) { return a.culprit.kind == kind; }));
}

instrument::JobState Controller::state() const {
  using instrument::JobState;
  if (off_) return JobState::off;
  switch (phase_) {
    case Phase::learning:
      return JobState::starting;
    case Phase::profiling:
      return JobState::profiling;
    case Phase::validating:
      return JobState::validating;
    case Phase::agreeing:
      return JobState::mitigating;
    case Phase::tracking:
      break;
  }
  return JobState::tracking;
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

void Controller::handle(ProcessId from, const Message& message) {
  if (off_) return;
  if (const auto* samples = std::get_if<Samples>(&message)) {
    job_.handle(from, *samples);
    if (watched() != from) return;
    for (const Sample& sample : samples->samples)
      if (!sample.disturbed && !sample.provisional) onSample(sample);
  } else if (const auto* introduce = std::get_if<Introduce>(&message)) {
    job_.handle(from, *introduce);
  } else if (const auto* formed = std::get_if<CommunicatorFormed>(&message)) {
    job_.handle(from, *formed);
  } else if (const auto* gone = std::get_if<CommunicatorGone>(&message)) {
    job_.handle(from, *gone);
  } else if (const auto* layout = std::get_if<LayoutKnown>(&message)) {
    job_.handle(from, *layout);
  } else if (const auto* transfers = std::get_if<TransferProfile>(&message)) {
    job_.handle(from, *transfers);
    MemberView& member = job_.members()[from];
    if (phase_ == Phase::learning || member.healthyTransfers.empty()) member.healthyTransfers = member.transfers;
  } else if (const auto* counter = std::get_if<Counter>(&message)) {
    for (auto& agreement : agreements_) agreement->handle(from, *counter);
  } else if (const auto* vote = std::get_if<Vote>(&message)) {
    for (auto& agreement : agreements_) agreement->handle(from, *vote);
  } else if (std::holds_alternative<RequestOff>(message)) {
    off_ = true;
    validation_.reset();
    outbox_.toAll(SwitchOff{});
    emit({.kind = EventKind::switchedOff,
          .text = "Falcon was switched off in this job; what it had changed stays as it is"});
  } else if (const auto* results = std::get_if<LinkResults>(&message); results && probes_.contains(results->wave)) {
    onProbe(*results);
  } else if (validation_) {
    validation_->handle(from, message);
  }
}

void Controller::left(ProcessId process) {
  job_.left(process);
  if (validation_) validation_->left(process);
  for (auto& agreement : agreements_) agreement->left(process);
}

void Controller::tick() {
  if (off_) return;
  switch (phase_) {
    case Phase::learning:
      learn();
      break;
    case Phase::tracking:
      watchRelief();
      considerRemedies();
      break;
    case Phase::profiling:
      endProfiling();
      break;
    case Phase::validating:
      validation_->tick();
      if (validation_->finished()) conclude();
      break;
    case Phase::agreeing:
      endAgreement();
      break;
  }
}

void Controller::learn() {
  const auto process = watched();
  if (!process) return;
  if (!periodKnown_) {
    periodKnown_ = true;
    emit({.kind = EventKind::periodKnown,
          .text = "the iteration's period is known; a short profile is taken as the healthy baseline"});
    outbox_.toAll(SetProfiling{true});
  }
  if (job_.samplesSince({}) < settings_.baselineIterations) return;
  for (auto& [id, member] : job_.members())
    member.healthy = JobView::means(member, static_cast<std::size_t>(settings_.baselineIterations));
  outbox_.toAll(SetProfiling{false});
  healthyMilliseconds_ = currentMilliseconds_ = job_.members()[*process].healthy->duration * 1e3;
  emit({.kind = EventKind::baselineTaken,
        .afterMilliseconds = healthyMilliseconds_,
        .text = fmt::format("healthy baseline of {} ranks over {} iterations: {:.1f} ms an iteration",
                            job_.members().size(), settings_.baselineIterations, healthyMilliseconds_)});
  phase_ = Phase::tracking;
}

void Controller::onSample(const Sample& sample) {
  iteration_ = sample.index;
  const auto change = detector_.add(sample.seconds * 1e3);
  if (change && phase_ != Phase::learning) onChange(*change);
}

void Controller::onChange(const instrument::Change& change) {
  using instrument::ChangeKind;
  const EventKind kind = change.kind == ChangeKind::onset       ? EventKind::onset
                         : change.kind == ChangeKind::worsening ? EventKind::worsening
                         : change.kind == ChangeKind::easing    ? EventKind::easing
                                                                : EventKind::relief;
  currentMilliseconds_ = change.after;
  Event event{.kind = kind,
              .beforeMilliseconds = change.before,
              .afterMilliseconds = change.after,
              .confidence = change.confidence};
  event.text = fmt::format("iterations went from {:.1f} ms to {:.1f} ms", change.before, change.after);
  if (kind == EventKind::onset || kind == EventKind::worsening) {
    emit(event);
    onsetOpen_ = true;
    attempts_ = 0;
    if (phase_ == Phase::tracking) startProfiling();
    return;
  }
  if (kind == EventKind::easing) return emit(event);
  // Relief of what nobody mitigated shows in the iteration time. Mitigated culprits have a figure of their own to
  // watch.
  bool named = false;
  for (std::size_t i = active_.size(); i-- > 0;) {
    if (active_[i].applied) continue;
    event.culprit = active_[i].culprit;
    emit(event);
    named = true;
    active_.erase(active_.begin() + static_cast<std::ptrdiff_t>(i));
  }
  if (!named && active_.empty()) emit(event);
  onsetOpen_ = false;
  if (phase_ == Phase::profiling) {
    outbox_.toAll(SetProfiling{false});
    phase_ = Phase::tracking;
  }
}

void Controller::startProfiling() {
  for (auto& [id, member] : job_.members()) member.transfers.clear();
  mark_ = job_.receivedNow();
  phaseStarted_ = clock_.now();
  ++attempts_;
  phase_ = Phase::profiling;
  outbox_.toAll(SetProfiling{true});
}

void Controller::endProfiling() {
  const bool enough = job_.samplesSince(mark_) >= settings_.profilingIterations;
  const double patience = std::max(10.0, 20 * currentMilliseconds_ * 1e-3);
  if (!enough && seconds(clock_.now() - phaseStarted_) < patience) return;
  outbox_.toAll(SetProfiling{false});
  phase_ = Phase::tracking;
  phaseStarted_ = clock_.now();
  const Suspects suspects = suspect(job_, static_cast<std::size_t>(settings_.profilingIterations));
  if (suspects.empty()) {
    emit({.kind = EventKind::inconclusive, .text = "slower, but no rank or group stands out: " + suspects.reason});
    budget_.spent(0ns, false, clock_.now());
    return;
  }
  emit({.kind = EventKind::suspicion, .text = suspects.reason});
  if (!settings_.validate) return;
  const bool first = attempts_ <= 1;
  if (!budget_.allows(clock_.now(), first)) {
    emit({.kind = EventKind::inconclusive,
          .text = fmt::format("no validation: NCCL_FALCON_TRAP_BUDGET={} percent of the run time is used up",
                              settings_.trapBudgetPercent)});
    return;
  }
  ValidationInput input;
  input.id = nextId_;
  nextId_ += 1000;  // a validation numbers its waves after its own id
  input.suspects = suspects;
  input.limit = budget_.limit(clock_.now(), first, settings_.trapTimeout);
  input.window = static_cast<std::size_t>(settings_.profilingIterations);
  input.knownLinkRates = linkRates_;
  emit({.kind = EventKind::trapClosed, .text = "the job is held to test " + suspects.reason});
  validation_ = startValidation(input, job_, clock_, outbox_);
  phase_ = Phase::validating;
}

void Controller::conclude() {
  const Validation::Outcome outcome = validation_->outcome();
  validation_.reset();
  phase_ = Phase::tracking;
  phaseStarted_ = clock_.now();
  const bool conclusive = outcome.verdict.certain && !outcome.verdict.culprits.empty();
  budget_.spent(Nanoseconds(static_cast<std::int64_t>(outcome.trapSeconds * 1e9)), conclusive, clock_.now());
  emit({.kind = outcome.trapTimedOut ? EventKind::trapTimedOut : EventKind::trapOpened,
        .durationSeconds = outcome.trapSeconds,
        .text = fmt::format("the job was held for {:.2f} s ({:.2f} s until all were)", outcome.trapSeconds,
                            outcome.closingSeconds)});
  if (!conclusive) {
    emit({.kind = EventKind::inconclusive,
          .confidence = outcome.verdict.confidence,
          .text = "not certain: " + outcome.verdict.evidence});
    return;
  }
  for (const auto& [link, rate] : outcome.linkRates) {
    const bool accused =
        std::any_of(outcome.verdict.culprits.begin(), outcome.verdict.culprits.end(), [&, at = link](const Culprit& c) {
          return c.kind == CulpritKind::link && (c.link == at || c.link == Link{at.to, at.from});
        });
    if (!accused) linkRates_[link] = rate;
  }
  for (const Culprit& culprit : outcome.verdict.culprits) {
    const bool known =
        std::any_of(active_.begin(), active_.end(), [&](const Active& a) { return a.culprit == culprit; });
    if (known) continue;
    emit({.kind = EventKind::verdict,
          .beforeMilliseconds = healthyMilliseconds_,
          .afterMilliseconds = currentMilliseconds_,
          .confidence = outcome.verdict.confidence,
          .culprit = culprit,
          .text = nameOf(culprit) + " is slow: " + outcome.verdict.evidence});
    Active active;
    active.culprit = culprit;
    active.healthyMilliseconds = healthyMilliseconds_;
    active.slowMilliseconds = currentMilliseconds_;
    if (culprit.kind == CulpritKind::rank) {
      if (const auto process = job_.processOf(culprit.rank)) {
        const MemberView& member = job_.members()[*process];
        active.healthyFigure = member.healthy ? member.healthy->outsidePerMicroBatch : 0;
        active.slowFigure =
            JobView::means(member, static_cast<std::size_t>(settings_.profilingIterations)).outsidePerMicroBatch;
      }
    } else if (const auto rate = outcome.linkRates.find(culprit.link); rate != outcome.linkRates.end()) {
      // A probe runs beside the training: it never sees the full healthy rate. Twice the slow rate is relief enough.
      active.slowFigure = 1 / rate->second;
      active.healthyFigure = active.slowFigure / 4;
    }
    active.watch.emplace(active.healthyFigure, active.slowFigure,
                         culprit.kind == CulpritKind::rank ? healthySamplesForRelief : 2);
    active_.push_back(std::move(active));
    onsetOpen_ = false;
  }
}

void Controller::considerRemedies() {
  if (onsetOpen_ && attempts_ < attemptsPerOnset && budget_.allows(clock_.now(), false) &&
      clock_.now() - phaseStarted_ > 3s)
    return startProfiling();
  if (settings_.mitigate == MitigateMode::off) return;
  for (std::size_t i = 0; i < active_.size(); ++i) {
    Active& active = active_[i];
    if (active.applied || active.advised) continue;
    Remedy remedy = remedyFor(job_, active.culprit, settings_.deterministic,
                              static_cast<std::size_t>(settings_.profilingIterations));
    active.advised = true;
    const bool canDo = remedy.kind == Remedy::Kind::splitMicroBatches || remedy.kind == Remedy::Kind::reroute;
    if (settings_.mitigate == MitigateMode::advise || !canDo) {
      emit({.kind = EventKind::mitigationAdvised, .culprit = active.culprit, .text = remedy.text});
      continue;
    }
    return startAgreement(i, std::move(remedy), false);
  }
}

void Controller::startAgreement(std::size_t activeIndex, Remedy remedy, bool undo) {
  agreements_.clear();
  agreeingFor_ = activeIndex;
  undoing_ = undo;
  const Nanoseconds limit =
      std::max<Nanoseconds>(5s, Nanoseconds(static_cast<std::int64_t>(3e6 * currentMilliseconds_)));
  if (remedy.kind == Remedy::Kind::splitMicroBatches) {
    Agreement::Subject subject{
        AgreementKind::microBatches, 0, {remedy.microBatches.begin(), remedy.microBatches.end()}};
    agreements_.push_back(
        std::make_unique<Agreement>(nextId_++, subject, job_.allProcesses(), 1, clock_, limit, outbox_));
  }
  for (const RingPlan& ring : remedy.rings) {
    const auto communicator = job_.communicators().find(ring.communicator);
    if (communicator == job_.communicators().end()) continue;
    Agreement::Subject subject{AgreementKind::ring, ring.communicator, {ring.order.begin(), ring.order.end()}};
    agreements_.push_back(std::make_unique<Agreement>(nextId_++, subject, job_.processesOf(communicator->second), 8,
                                                      clock_, limit, outbox_));
  }
  agreedRemedy_ = std::move(remedy);
  phase_ = Phase::agreeing;
}

void Controller::endAgreement() {
  bool all = true, committed = true;
  for (auto& agreement : agreements_) {
    agreement->tick();
    all = all && agreement->finished();
    committed = committed && agreement->state() == Agreement::State::committed;
  }
  if (!all) return;
  phase_ = Phase::tracking;
  Active& active = active_[agreeingFor_];
  for (const auto& agreement : agreements_) {
    if (agreement->state() != Agreement::State::committed || agreement->subject().kind != AgreementKind::ring) continue;
    auto& ring = job_.communicators()[agreement->subject().communicator].ring;
    ring.assign(agreement->subject().values.begin(), agreement->subject().values.end());
  }
  agreements_.clear();
  if (!committed) {
    ++refused_;
    // The next tick tries again with new counters; an undo stays due.
    emit({.kind = EventKind::mitigationRefused,
          .culprit = active.culprit,
          .text = "no change: not all ranks agreed in time: " + agreedRemedy_.text});
    if (!undoing_) active.advised = refused_ > 5;
    return;
  }
  ++applied_;
  rebase();
  emit({.kind = undoing_ ? EventKind::mitigationUndone : EventKind::mitigationApplied,
        .culprit = active.culprit,
        .text = agreedRemedy_.text});
  if (undoing_) {
    active_.erase(active_.begin() + static_cast<std::ptrdiff_t>(agreeingFor_));
    return;
  }
  active.applied = true;
  active.remedy = agreedRemedy_;
}

// The plan changed the iteration time on purpose: the detector learns the new level without a word.
void Controller::rebase() {
  detector_.rebase();
  onsetOpen_ = false;
  lastProbe_ = clock_.now();
}

void Controller::watchRelief() {
  for (std::size_t i = 0; i < active_.size(); ++i) {
    Active& active = active_[i];
    if (active.relieved) {
      if (active.applied) return startAgreement(i, undoOf(job_, active.remedy), true);
      continue;
    }
    if (active.culprit.kind == CulpritKind::link) {
      if (clock_.now() - lastProbe_ > 10s) probes_.clear();  // its answer got lost
      if (active.applied && clock_.now() - lastProbe_ > probeInterval && probes_.empty()) probe(active);
      continue;
    }
    const auto process = job_.processOf(active.culprit.rank);
    if (!process) continue;
    const MemberView& member = job_.members()[*process];
    if (member.received == active.watchedSamples || member.recent.empty()) continue;
    active.watchedSamples = member.received;
    const Sample& newest = member.recent.back();
    if (active.watch->add(newest.outside / std::max(1, newest.microBatches))) return relieve(i);
  }
}

void Controller::relieve(std::size_t activeIndex) {
  Active& active = active_[activeIndex];
  active.relieved = true;
  emit({.kind = EventKind::relief,
        .beforeMilliseconds = active.slowMilliseconds,
        .afterMilliseconds = active.healthyMilliseconds,
        .culprit = active.culprit,
        .text = nameOf(active.culprit) + " is as fast as before"});
  if (active.applied) return;  // the next tick starts the undo
  active_.erase(active_.begin() + static_cast<std::ptrdiff_t>(activeIndex));
}

}  // namespace falcon::control
