// What is healthy: learnt at the start and after the job's calls changed, compared with what an earlier run left.
#include <algorithm>
#include <cmath>
#include <utility>

#include "base/format.h"
#include "base/median.h"
#include "control/controller.h"
#include "control/peers.h"

namespace falcon::control {
namespace {

// A job whose controller has just left is about to end itself, as a rule.
constexpr Nanoseconds successorPatience = 3s;
// The members' timing follows the samples.
constexpr Nanoseconds timingPatience = 2s;
// Iterations that tell what is healthy where nothing happens in them; of the newest it is not known yet whether they
// do.
constexpr int longBaseline = 48, notYetJudged = 12;
static_assert(longBaseline + notYetJudged <= static_cast<int>(JobView::keptSamples));
constexpr int peerRounds = 3;  // looks at the peers, each over as many iterations as the baseline
// A job that was faster for a moment only is not believed again for as long as so many baselines take.
constexpr int baselinesBeforeFaster = 10;

}  // namespace

void Controller::learn() {
  const auto process = watched();
  if (!process || (settings_.successor && clock_.now() - phaseStarted_ < successorPatience)) return;
  if (!periodKnown_) {
    periodKnown_ = true;
    mark_ = job_.receivedNow();
    const std::string why = becameFaster_ ? fmt::format("the job has become faster, {:.1f} ms an iteration",
                                                        detector_.currentMilliseconds())
                                          : "the iteration's period is known";
    emit({.kind = EventKind::periodKnown, .text = why + "; a short profile is taken as the healthy baseline"});
    outbox_.toAll(profilingOrder());
  }
  if (haveAllSince(learnFrom_, settings_.baselineIterations)) takeBaseline(*process);
}

// A process that never iterates is not waited for: twice as many iterations of most others tell that it does not.
bool Controller::haveAllSince(const std::map<ProcessId, std::uint64_t>& mark, int iterations) const {
  return job_.samplesSince(mark) >= iterations || job_.samplesOfMostSince(mark) >= 2 * iterations;
}

void Controller::takeBaseline(ProcessId watched) {
  if (becameFaster_ && !isFaster(watched)) return keepFormerBaseline();
  fasterForAMoment_ = false;
  for (auto& [id, member] : job_.members()) {
    member.healthy.reset();
    member.healthyCalls.clear();
    member.healthyTransfers = {};
    if (!member.recent.empty())
      member.healthy = JobView::means(member, static_cast<std::size_t>(settings_.baselineIterations));
    member.healthyQuotaCores = member.recent.empty() ? 0 : member.recent.back().quotaCores;
  }
  baselineDue_ = job_.allProcesses();
  outbox_.toAll(SetProfiling{false});
  const auto times = judgedMilliseconds(watched, static_cast<std::size_t>(settings_.baselineIterations));
  healthyMilliseconds_ = currentMilliseconds_ = mean(times);
  // What was slow already is the job's usual pace, as far as anybody can tell.
  if (detector_.slow()) rebase();
  emit({.kind = EventKind::baselineTaken,
        .afterMilliseconds = healthyMilliseconds_,
        .text = fmt::format("healthy baseline of {} ranks over {} iterations: {:.1f} ms an iteration",
                            job_.members().size(), settings_.baselineIterations, healthyMilliseconds_)});
  phase_ = Phase::tracking;
  phaseStarted_ = clock_.now();
  slowFromTheStart_ = becameFaster_ = false;
  // The baseline is a mean: an evaluation in it must not look as if the job became faster after it, again and again.
  const double level = detector_.currentMilliseconds();
  baselineMilliseconds_ = level > 0 ? level : healthyMilliseconds_;
  compareDue_ = true;
  refinedFrom_ = job_.receivedNow();
}

// A few iterations tell a job's pace by chance: what many tell takes their place, once there are as many.
void Controller::refineBaseline() {
  if (!refinedFrom_) return;
  if (slow_ || slowFromTheStart_ || relearnDue_ || !failSlows_.empty()) return refinedFrom_.reset();
  constexpr int needed = longBaseline + notYetJudged;
  const auto process = watched();
  if (!process || compareDue_ || byPeers_ || !haveAllSince(*refinedFrom_, needed)) return;
  refinedFrom_.reset();
  auto times = judgedMilliseconds(*process, needed);
  if (times.size() < needed) return;
  times.resize(longBaseline);
  // A checkpoint or an evaluation among them would be part of what is healthy.
  if (mean(times) > median(times) * (1 + leastShare())) return;
  for (auto& [id, member] : job_.members())
    if (member.healthy && member.recent.size() >= needed)
      member.healthy = JobView::means(member, longBaseline, notYetJudged);
  healthyMilliseconds_ = currentMilliseconds_ = mean(times);
  keepBaseline();
}

// A baseline of a warm-up, or of a machine that others used, hides who becomes slow later. The detector learns in
// silence that the job is faster.
void Controller::noticeFaster() {
  const double level = detector_.currentMilliseconds();
  if (phase_ != Phase::tracking || relearnDue_ || relearning_ || detector_.slow() || level <= 0 || !failSlows_.empty())
    return;
  if (detectorSamples_ < fasterNotBefore_) return;
  // By a change, as it is seen just now; or by less, where enough iterations have told it.
  if (level * onsetGrowth() >= baselineMilliseconds_ &&
      !detector_.isHealthyBelow(baselineMilliseconds_, settings_.baselineIterations))
    return;
  if (slowFromTheStart_) {
    if (level >= healthyMilliseconds_ * onsetGrowth()) return;
    emit(changed(EventKind::relief, std::exchange(currentMilliseconds_, level), level));
    slowFromTheStart_ = onsetOpen_ = false;
  }
  becameFaster_ = relearnDue_ = true;
}

// Iterations may be so unsteady that the detector does not know yet that they are slow again: then what was profiled is
// of somebody's slowness, and whoever it is would be healthy by it. It must be nearer to the faster level.
bool Controller::isFaster(ProcessId watched) const {
  const auto count = static_cast<std::size_t>(settings_.baselineIterations);
  const double faster = std::min(detector_.currentMilliseconds(), baselineMilliseconds_);
  return median(judgedMilliseconds(watched, count)) < std::sqrt(faster * baselineMilliseconds_);
}

// Back at the pace of the only baseline that was taken: nobody is slow by it, and so nobody could be named.
bool Controller::isBackFromAMoment(const instrument::Change& change) const {
  return fasterForAMoment_ && detectorSamples_ < fasterNotBefore_ && change.kind == instrument::ChangeKind::onset &&
         failSlows_.empty() && change.after < baselineMilliseconds_ * onsetGrowth();
}

std::vector<double> Controller::judgedMilliseconds(ProcessId process, std::size_t count) const {
  std::vector<double> milliseconds;
  const auto& recent = job_.members().at(process).recent;
  const auto used = static_cast<std::ptrdiff_t>(std::min(recent.size(), count));
  for (auto sample = recent.end() - used; sample != recent.end(); ++sample)
    milliseconds.push_back(pace_.judged(sample->seconds, sample->work) * 1e3);
  return milliseconds;
}

/// Who becomes slow while a faster baseline is taken, or is about to be, is slow by the one before.
void Controller::keepFormerBaseline() {
  becameFaster_ = relearnDue_ = false;
  fasterForAMoment_ = true;
  fasterNotBefore_ = detectorSamples_ + std::int64_t{baselinesBeforeFaster} * settings_.baselineIterations;
  if (phase_ != Phase::learning) return;
  outbox_.toAll(SetProfiling{false});
  phase_ = Phase::tracking;
  phaseStarted_ = clock_.now();
}

void Controller::forgetTheMoment() {
  const std::int64_t left = fasterNotBefore_ - detectorSamples_;
  rebase();
  fasterNotBefore_ = left;
}

// A job that is slow from the start has nothing faster to be compared with but an earlier run of the same name, or else
// its own ranks beside each other. True: it is slow, and a profiling has begun.
bool Controller::compareWithStored() {
  if (!compareDue_ || (!baselineDue_.empty() && clock_.now() - phaseStarted_ < timingPatience)) return false;
  compareDue_ = false;
  byPeers_.reset();
  const bool first = !std::exchange(compared_, true);
  const double seconds = healthyMilliseconds_ * 1e-3;
  if (!first || !settings_.stored || !isOfThisJob(*settings_.stored, job_, pace_.usual(), calls_)) {
    byPeers_ = byPeers();
    peerRounds_ = 1;
    peersSince_ = job_.receivedNow();
    return askPeers();
  }
  const double before = pace_.judged(settings_.stored->iterationSeconds, settings_.stored->work);
  if (seconds < before * onsetGrowth()) {
    keepBaseline();
    return false;
  }
  useStored(*settings_.stored, job_);
  beginSlow(before,
            {.text = fmt::format("slow from the start: iterations take {:.1f} ms, and took {:.1f} ms when this job "
                                 "ran last",
                                 healthyMilliseconds_, before * 1e3)});
  return true;
}

// Whoever is slower than its peers by chance, or while the job warms up, is not so again and again.
bool Controller::askPeers() {
  if (!byPeers_) return false;
  if (slow_ || relearnDue_ || !failSlows_.empty()) {
    byPeers_.reset();
    return false;
  }
  if (!byPeers_->empty() && peerRounds_ < peerRounds) {
    if (!haveAllSince(peersSince_, settings_.baselineIterations)) return false;
    byPeers_ = inBoth(byPeers(), *byPeers_);
    ++peerRounds_;
    peersSince_ = job_.receivedNow();
  }
  if (byPeers_->empty()) {
    byPeers_.reset();
    keepBaseline();
    return false;
  }
  if (peerRounds_ < peerRounds) return false;
  const diagnose::Suspicion suspects = *std::exchange(byPeers_, std::nullopt);
  const double saved = usePeers(suspects, job_);
  beginSlow(
      std::max(healthyMilliseconds_ * 1e-3 - saved, 0.0),
      {.suspects = suspectsOf(suspects, job_),
       .text = fmt::format("slow from the start, beside peers: {}; iterations take {:.1f} ms, and could take {:.1f}",
                           suspects.reason, healthyMilliseconds_, healthyMilliseconds_ - saved * 1e3)});
  return true;
}

diagnose::Suspicion Controller::byPeers() const {
  return suspicionByPeers(job_, static_cast<std::size_t>(settings_.baselineIterations), leastShare());
}

void Controller::keepBaseline() {
  if (settings_.keep && failSlows_.empty())
    settings_.keep(storedFrom(job_, healthyMilliseconds_ * 1e-3, pace_.usual(), calls_, wallTime_()));
}

// The detector knows this pace only. Relief shows in the culprits' own figures, as after a change of ours.
void Controller::beginSlow(double beforeSeconds, Event event) {
  event.kind = EventKind::onset;
  event.beforeMilliseconds = beforeSeconds * 1e3;
  event.afterMilliseconds = healthyMilliseconds_;
  emit(std::move(event));
  healthyMilliseconds_ = beforeSeconds * 1e3;
  onsetOpen_ = slowFromTheStart_ = true;
  attempts_ = traps_ = 0;
  lossSeconds_ = rebalance::accumulatedLoss(iteration_, currentMilliseconds_ * 1e-3, beforeSeconds);
  startProfiling();
}

// Elastic training, another number of micro-batches, the next stage of a curriculum: the job's own doing, no alarm.
void Controller::onPattern(const Sample& sample) {
  const bool sameRank = patternOf_ == watched();
  const bool changed = sameRank && sample.pattern != pattern_;
  patternOf_ = watched();
  if (changed && phase_ == Phase::learning) {
    learnFrom_ = job_.receivedNow();
    rebase();
  } else if (changed) {
    iteration_ = sample.index;
    emit(
        {.kind = EventKind::patternChanged,
         .beforeMilliseconds = currentMilliseconds_,
         .afterMilliseconds = sample.seconds * 1e3,
         .text = fmt::format("the job makes other calls than before: an iteration has {} calls and takes {:.1f} ms, it "
                             "had {} and took {:.1f} ms; what is healthy is learnt anew",
                             sample.calls, sample.seconds * 1e3, calls_, currentMilliseconds_)});
    rebase();
    currentMilliseconds_ = sample.seconds * 1e3;
    relearnDue_ = true;
  }
  pattern_ = sample.pattern;
  calls_ = sample.calls;
}

// The job begins to tell its work, or tells it no longer: what was healthy is measured otherwise.
void Controller::onOtherMeasure() {
  rebase();
  if (phase_ == Phase::learning)
    learnFrom_ = job_.receivedNow();
  else
    relearnDue_ = true;
}

}  // namespace falcon::control
