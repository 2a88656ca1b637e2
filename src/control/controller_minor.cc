// What stays a little slower for long (ChangeKind::minor): profiled once and told, with whom it most likely comes from.
// The job is never held for it.
#include <utility>

#include "base/format.h"
#include "control/controller.h"
#include "control/likely_culprit.h"

namespace falcon::control {
namespace {

// A small difference shows in more iterations than a large one.
constexpr int profilingFactor = 4;

}  // namespace

int Controller::iterationsToProfile() const {
  return settings_.profilingIterations * (minorProfile_ ? profilingFactor : 1);
}

/// @param change  what the detector said of the newest sample
void Controller::followMinor(const std::optional<instrument::Change>& change) {
  using instrument::ChangeKind;
  if (change && change->kind == ChangeKind::minor) return beginMinor(*change);
  if (change && change->kind == ChangeKind::onset)
    endMinor("iterations became longer still: from here on that is told as an onset");
  else if (change && change->kind == ChangeKind::minorOver)
    endMinor(
        fmt::format("iterations take {:.1f} ms, {:.1f} ms when the job was healthy", change->after, change->before));
  else if (!detector_.minor())
    endMinor("what is healthy is learnt anew");
}

void Controller::beginMinor(const instrument::Change& change) {
  // Beside something known the level tells of that, or of what was done about it.
  if (phase_ == Phase::learning || slow_ || slowFromTheStart_ || becameFaster_ || !failSlows_.empty()) return;
  minorNotSaid_ =
      Event{.kind = EventKind::minor,
            .beforeMilliseconds = change.before,
            .afterMilliseconds = change.after,
            .confidence = change.confidence,
            .severity = 1,
            .text = fmt::format(
                "the newest {} iterations took {:.1f} ms, {:.1f} % more than the {:.1f} ms of the healthy job; {:g} % "
                "would be an onset",
                instrument::MinorSlowness::lasting, change.after, 100 * (change.after / change.before - 1),
                change.before, settings_.onsetThresholdPercent)};
}

// True: a profiling has begun.
bool Controller::profileMinor() {
  if (!minorNotSaid_ || onsetOpen_) return false;
  startProfiling();
  --attempts_;  // it is none of an onset's
  minorProfile_ = true;
  return true;
}

void Controller::sayMinor() {
  if (!minorNotSaid_) return;  // over meanwhile
  Event event = *std::exchange(minorNotSaid_, std::nullopt);
  const LikelyCulprit found = likelyCulprit(job_, clocks_, leastShare());
  event.culprit = found.culprit;
  event.ranges = rangeGrowths(job_, JobView::keptSamples);
  event.text += "; " + found.reason + whereabouts(found.culprit) + "; the job is not held for it";
  minorSaid_ = true;
  emit(std::move(event));
}

void Controller::endMinor(const std::string& why) {
  minorNotSaid_.reset();
  if (std::exchange(minorSaid_, false)) emit({.kind = EventKind::minorOver, .text = why});
}

}  // namespace falcon::control
