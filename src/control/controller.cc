#include "control/controller.h"

#include <algorithm>
#include <limits>

#include "base/format.h"

namespace falcon::control {
namespace {

constexpr int attemptsPerOnset = 3;
constexpr Nanoseconds profilingPause = 3s;  // between attempts
constexpr Nanoseconds settledJob = 1s;      // nobody joined for so long
// A job whose controller has just left is about to end itself, as a rule.
constexpr Nanoseconds successorPatience = 3s;

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
      nextId_(firstId(wallTime_())),
      mitigation_(
          {settings.mitigate, settings.deterministic, window()}, job_, clock, outbox, [this] { return nextId_++; },
          [this](Event event) { emit(std::move(event)); }),
      detector_(instrument::ChangePointOptions{.threshold = settings.onsetThresholdPercent / 100}),
      budget_(settings.trapBudgetPercent, clock.now()) {
  phaseStarted_ = clock.now();
}

Controller::~Controller() = default;

void Controller::emit(Event event) {
  event.time = clock_.now();
  event.wallTime = wallTime_();
  event.iteration = iteration_;
  sink_.add(event);
}

int Controller::activeCount(CulpritKind kind) const {
  return static_cast<int>(std::count_if(failSlows_.begin(), failSlows_.end(),
                                        [&](const FailSlow& each) { return each.culprit.kind == kind; }));
}

instrument::JobState Controller::state() const {
  using instrument::JobState;
  if (off_) return JobState::off;
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
  } else if (const auto* traffic = std::get_if<Traffic>(&message)) {
    job_.handle(from, *traffic);
  } else if (const auto* transfers = std::get_if<TransferProfile>(&message)) {
    onTransfers(from, *transfers);
  } else if (const auto* counter = std::get_if<Counter>(&message)) {
    mitigation_.handle(from, *counter);
  } else if (const auto* vote = std::get_if<Vote>(&message)) {
    mitigation_.handle(from, *vote);
  } else if (std::holds_alternative<RequestOff>(message)) {
    switchOff();
  } else if (const auto* results = std::get_if<LinkResults>(&message); results && probes_.contains(results->wave)) {
    onProbe(*results);
  } else if (validation_) {
    validation_->handle(from, message);
  }
}

void Controller::left(ProcessId process) {
  job_.left(process);
  baselineDue_.erase(process);
  transfersDue_.erase(process);
  if (validation_) validation_->left(process);
  mitigation_.left(process);
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
  mitigation_.abandon();
  if (validation_) validation_->abandon();
  validation_.reset();
}

void Controller::end() {
  handOver();
  if (!announced_ || off_) return;
  emit({.kind = EventKind::jobEnded,
        .text = fmt::format("the job ends after {} iterations; {} fail-slow{} named", iteration_ + 1,
                            named_ == 0 ? "no" : std::to_string(named_), named_ == 1 ? " was" : "s were")});
}

void Controller::tick() {
  if (off_) return;
  announce();
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

void Controller::learn() {
  const auto process = watched();
  if (!process || (settings_.successor && clock_.now() - phaseStarted_ < successorPatience)) return;
  if (!periodKnown_) {
    periodKnown_ = true;
    mark_ = job_.receivedNow();
    emit({.kind = EventKind::periodKnown,
          .text = "the iteration's period is known; a short profile is taken as the healthy baseline"});
    outbox_.toAll(SetProfiling{true});
  }
  if (job_.samplesSince({}) >= settings_.baselineIterations) takeBaseline(*process);
}

void Controller::takeBaseline(ProcessId watched) {
  for (auto& [id, member] : job_.members())
    member.healthy = JobView::means(member, static_cast<std::size_t>(settings_.baselineIterations));
  baselineDue_ = job_.allProcesses();
  outbox_.toAll(SetProfiling{false});
  healthyMilliseconds_ = currentMilliseconds_ = job_.members()[watched].healthy->duration * 1e3;
  // What was slow already is the job's usual pace, as far as anybody can tell.
  if (detector_.slow()) rebase();
  emit({.kind = EventKind::baselineTaken,
        .afterMilliseconds = healthyMilliseconds_,
        .text = fmt::format("healthy baseline of {} ranks over {} iterations: {:.1f} ms an iteration",
                            job_.members().size(), settings_.baselineIterations, healthyMilliseconds_)});
  phase_ = Phase::tracking;
}

void Controller::onTransfers(ProcessId from, const TransferProfile& profile) {
  const auto found = job_.members().find(from);
  if (found == job_.members().end()) return;
  MemberView& member = found->second;
  const auto before = mark_.find(from);
  const TransferView view{profile.sums, member.received - (before == mark_.end() ? 0 : before->second)};
  transfersDue_.erase(from);
  (baselineDue_.erase(from) > 0 ? member.healthyTransfers : member.transfers) = view;
}

void Controller::onSample(const Sample& sample) {
  iteration_ = sample.index;
  ++detectorSamples_;
  if (slow_ || !failSlows_.empty()) {
    const double lost = rebalance::accumulatedLoss(1, sample.seconds, healthyMilliseconds_ * 1e-3);
    lossSeconds_ += lost;
    for (FailSlow& each : failSlows_) each.lossSeconds += lost;
  }
  const auto change = detector_.add(sample.seconds * 1e3);
  if (change && phase_ != Phase::learning) onChange(*change);
}

void Controller::onChange(const instrument::Change& change) {
  using instrument::ChangeKind;
  const bool slower = change.kind == ChangeKind::onset || change.kind == ChangeKind::worsening;
  currentMilliseconds_ = change.after;
  if (!slower && !slow_) return;  // the end of something that was never said
  Event event{.kind = change.kind == ChangeKind::onset       ? EventKind::onset
                      : change.kind == ChangeKind::worsening ? EventKind::worsening
                      : change.kind == ChangeKind::easing    ? EventKind::easing
                                                             : EventKind::relief,
              .beforeMilliseconds = change.before,
              .afterMilliseconds = change.after,
              .confidence = change.confidence,
              .text = fmt::format("iterations went from {:.1f} ms to {:.1f} ms", change.before, change.after)};
  if (change.kind == ChangeKind::relief) return onRelief(event);
  emit(event);
  if (!slower) return;
  if (!slow_) {
    if (failSlows_.empty()) healthyMilliseconds_ = change.before;
    lossSeconds_ =
        rebalance::accumulatedLoss(detectorSamples_ - change.sample, change.after * 1e-3, change.before * 1e-3);
  }
  slow_ = onsetOpen_ = true;
  attempts_ = 0;
  if (phase_ == Phase::tracking && !mitigation_.agreeing()) startProfiling();
}

// Relief of what nobody mitigated shows in the iteration time. Other culprits have a figure of their own to watch.
void Controller::onRelief(Event event) {
  slow_ = onsetOpen_ = false;
  if (phase_ == Phase::profiling || phase_ == Phase::collecting) {
    if (phase_ == Phase::profiling) outbox_.toAll(SetProfiling{false});
    phase_ = Phase::tracking;
    phaseStarted_ = clock_.now();
  }
  std::vector<Culprit> relieved;
  for (const FailSlow& each : failSlows_)
    if (!each.masked) relieved.push_back(each.culprit);
  std::erase_if(failSlows_, [](const FailSlow& each) { return !each.masked; });
  if (relieved.empty()) return emit(event);
  for (const Culprit& culprit : relieved) {
    event.culprit = culprit;
    emit(event);
    mitigation_.relieved(culprit);
  }
}

void Controller::track() {
  watchRelief();
  const double healthy = healthyMilliseconds_ * 1e-3, current = currentMilliseconds_ * 1e-3;
  if (mitigation_.tick(failSlows_, healthy, current) == Mitigation::Progress::changed) {
    rebase();
  }
  if (mitigation_.agreeing()) return;
  const Nanoseconds now = clock_.now();
  if (onsetOpen_ && attempts_ < attemptsPerOnset && now - phaseStarted_ > profilingPause &&
      (!settings_.validate || budget_.allows(now, attempts_ == 0)))
    return startProfiling();
  if (!relearning_ || detector_.healthyMilliseconds() <= 0) return;
  relearning_ = false;
  currentMilliseconds_ = detector_.healthyMilliseconds();
  if (failSlows_.empty() || currentMilliseconds_ < healthyMilliseconds_ * (1 + settings_.onsetThresholdPercent / 100))
    return;
  startProfiling();
  quiet_ = true;
}

// The plan changed the iteration time on purpose: the detector learns the new level without a word.
void Controller::rebase() {
  detector_.rebase();
  detectorSamples_ = 0;
  relearning_ = true;
  slow_ = onsetOpen_ = false;
  lastProbe_ = clock_.now();
  for (FailSlow& each : failSlows_) each.masked = true;
}

}  // namespace falcon::control
