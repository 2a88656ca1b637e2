#include "instrument/period_finder.h"

#include <algorithm>

#include "instrument/call_hash.h"

namespace falcon::instrument {
namespace {

/// Among equally rare calls a collective is the better anchor, since it ends at the same time everywhere; then the
/// larger.
std::uint64_t anchorWeight(const CallRecord& record) {
  const std::uint64_t bytes = record.count * sizeOf(record.type);
  return isPointToPoint(record.operation) ? bytes >> 2 : bytes | std::uint64_t{1} << 62;
}

/// Looking at all communicators takes a while where there are hundreds, and each may end a pattern with every call.
constexpr Nanoseconds considerInterval = 10ms;

}  // namespace

std::vector<IterationSample> PeriodFinder::add(const CallRecord& record) {
  std::vector<IterationSample> done;
  count(record);
  auto found = tracks_.find(record.communicator);
  if (found == tracks_.end()) {
    if (tracks_.size() >= trackedCommunicators) return done;
    found = tracks_.emplace(record.communicator, Track{PatternTracker(options_.pattern), boundaries_, {}}).first;
  }
  PatternTracker& tracker = found->second.tracker;
  const int generation = tracker.generation();
  const auto boundary = tracker.add(callHash(record), anchorWeight(record), record.leave);
  found->second.lastCall = record.leave;
  if (chosen_ == record.communicator && !tracker.following()) open_ = false;
  if (boundary && chosen_ == record.communicator) {
    ++boundaries_;
    if (tracker.generation() != chosenGeneration_) {
      chosenGeneration_ = tracker.generation();
      ++patterns_;
    }
    if (open_) done.push_back(close(*boundary, record.leave));
    open(record.leave);
  }
  const bool due = boundary && record.leave - considered_ >= considerInterval;
  if (due || tracker.generation() != generation) choose(record.leave);
  return done;
}

/// The communicator whose anchor recurs least often.
void PeriodFinder::choose(Nanoseconds now) {
  considered_ = now;
  const Track* current = chosen_ ? &tracks_.at(*chosen_) : nullptr;
  Nanoseconds usual{0};
  if (current) {
    const PatternTracker& tracker = current->tracker;
    if (tracker.generation() != chosenGeneration_) return take(*chosen_, now), choose(now);
    // A pattern that was lost is waited for, but not for ever: the communicator may have been destroyed.
    usual = std::max(tracker.interval(), Nanoseconds(1));
    const bool gone = tracker.following() ? now - tracker.lastBoundary() > 20 * usual : now - current->lastCall > 20s;
    if (!gone && boundaries_ >= static_cast<std::uint64_t>(options_.pattern.establishedRepeats) &&
        now - chosenSince_ >= options_.pattern.establishedTime)
      return;
    if (gone) usual = Nanoseconds(0);
  }
  std::optional<CommunicatorId> best;
  for (const auto& [id, track] : tracks_) {
    const Nanoseconds interval = track.tracker.interval();
    if (id == chosen_ || !track.tracker.following() || interval.count() == 0) continue;
    if (now - track.tracker.lastBoundary() > 4 * interval) continue;
    // Clearly longer: communicators that take part in the same iterations recur equally often.
    if (2 * interval > 3 * usual) best = id, usual = interval;
  }
  if (best) take(*best, now);
}

void PeriodFinder::take(CommunicatorId communicator, Nanoseconds now) {
  chosen_ = communicator;
  chosenSince_ = now;
  chosenGeneration_ = tracks_.at(communicator).tracker.generation();
  boundaries_ = 0;
  for (auto& [id, track] : tracks_) track.firstBoundary = 0;
  ++patterns_;
  period_ = 0;
  open_ = false;
}

bool PeriodFinder::isProvisional(const Track& chosen, Nanoseconds now) const {
  if (!chosen.tracker.settled() || now - chosenSince_ < options_.settleTime) return true;
  // A communicator that has called since and has no pattern yet may belong to a longer iteration. One that came when
  // the period was old, or never gets a pattern (expert parallelism), does not.
  constexpr std::uint64_t young = 16, patience = 128;
  if (boundaries_ > patience) return false;
  for (const auto& [id, track] : tracks_)
    if (!track.tracker.following() && track.lastCall > chosenSince_ && track.firstBoundary < young) return true;
  return false;
}

void PeriodFinder::count(const CallRecord& record) {
  if (!open_) return;
  const Nanoseconds enter = std::max(record.enter, start_);
  busy_.add(enter, record.leave);
  Share& share = shares_[record.communicator];
  share.busy.add(enter, record.leave);
  ++share.calls;
}

void PeriodFinder::open(Nanoseconds now) {
  open_ = true;
  start_ = now;
  busy_ = {};
  shares_.clear();
}

IterationSample PeriodFinder::close(const PatternTracker::Boundary& boundary, Nanoseconds now) {
  IterationSample sample;
  sample.index = index_++;
  sample.start = start_;
  sample.duration = now - start_;
  sample.inLibrary = std::min(busy_.total(), sample.duration);
  sample.outside = sample.duration - sample.inLibrary;
  sample.provisional = isProvisional(tracks_.at(*chosen_), now);
  sample.extraCalls = !boundary.matched;
  sample.pattern = patterns_;
  std::size_t calls = 0;
  for (const auto& [id, share] : shares_) {
    sample.communicators.push_back({id, share.busy.total(), share.calls});
    calls += share.calls;
  }
  if (boundary.matched) period_ = calls;
  return sample;
}

void PeriodFinder::rebase() {
  for (auto& [id, track] : tracks_) track.tracker.rebase();
  period_ = 0;
}

void PeriodFinder::overrun(std::uint64_t lost) {
  lost_ += lost;
  for (auto& [id, track] : tracks_) track.tracker.interrupt();
  open_ = false;
}

}  // namespace falcon::instrument
