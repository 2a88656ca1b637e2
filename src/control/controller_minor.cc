// What stays a little slower for long (ChangeKind::minor): profiled once and told, with whom it most likely comes from.
// The job is never held for it.
#include <utility>

#include "base/format.h"
#include "control/controller.h"
#include "control/decisions.h"
#include "control/waiting.h"

namespace falcon::control {
namespace {

// A small difference shows in more iterations than a large one.
constexpr int profilingFactor = 4;
// Of the delay: one cause must have it.
constexpr double half = 0.5;
// What profiled iterations may have lost for each millisecond that the slowness costs: more is of something else, such
// as a rank that got no processor for a moment.
constexpr double mostLoss = 1.5;
// The last one is judged as it is.
constexpr int mostProfiles = 8;

struct LikelyCulprit {
  Culprit culprit;  ///< none: nobody has half of the delay, or only a group is known
  std::string reason;
};

/// A mean tells of what happened once, too; the slowness was told by medians.
bool tellsOfIt(const JobView& job, const Event& minor) {
  const double told = minor.afterMilliseconds / minor.beforeMilliseconds - 1;
  return iterationGrowth(job, JobView::keptSamples) - 1 <= mostLoss * told;
}

/// By evidence that costs the job nothing, and no proof. What one grew by itself may be little, over so many
/// iterations.
/// @param limit  of what iterations became longer by, relative
LikelyCulprit likelyCulprit(JobView& job, const ClockBook& clocks, double limit) {
  const auto likely = [](Culprit culprit, const std::string& why) {
    const std::string name = nameOf(culprit);
    return LikelyCulprit{std::move(culprit), fmt::format("likely {}: {}", name, why)};
  };
  for (const diagnose::HostObservation& host : hostObservations(job, JobView::keptSamples))
    if (const auto found = diagnose::explanationOf(host); found && found->isCulprit())
      return likely({.kind = CulpritKind::host, .host = found->host}, found->evidence);
  diagnose::SeenInProfile seen = seenInProfile(job, JobView::keptSamples);
  if (auto blame = blameOf(job, clocks, JobView::keptSamples,
                           {.leastShare = limit / 2, .leastGrowth = 1 + limit / 2, .lasting = true}))
    seen.chain = std::move(*blame);
  const auto [ranks, groups, reason] = diagnose::suspect(
      seen, {.leastOfRank = 1 + limit / 2, .leastShare = limit / 2, .leastPart = half, .testedPart = half});
  if (ranks.size() == 1) return likely({CulpritKind::rank, ranks.front().rank, {}, false}, reason);
  if (!ranks.empty() || groups.size() != 1) return {{}, "nobody has half of the delay: " + reason};
  const Link& slowest = groups.front().slowest;
  if (slowest.from < 0) return {{}, "likely " + reason};
  return likely({CulpritKind::link, -1, slowest, false}, reason);
}

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
  minorProfiles_ = 0;
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
  const bool told = tellsOfIt(job_, *minorNotSaid_);
  if (!told && ++minorProfiles_ < mostProfiles) return;  // there will be another profile
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
