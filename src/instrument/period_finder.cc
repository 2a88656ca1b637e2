#include "instrument/period_finder.h"

#include <algorithm>
#include <utility>

#include "instrument/call_hash.h"
#include "instrument/occasional_step.h"

namespace falcon::instrument {
namespace {

double bytesOfCall(const CallRecord& record) {
  return static_cast<double>(record.count) * static_cast<double>(sizeOf(record.type));
}

/// Looking at all communicators takes a while where there are hundreds, and each may end a pattern with every call.
constexpr Nanoseconds considerInterval = 10ms;
/// Cuts of a pattern after which it stays cut where it is, and changes of that in a process's life.
constexpr int undecidedCuts = 24, mostSwaps = 8;
/// Among more communicators the times behind their boundaries are not compared: it would take milliseconds.
constexpr std::size_t mostCompared = 32;

}  // namespace

std::vector<IterationSample> PeriodFinder::add(const CallRecord& record) {
  if (options_.method == PeriodMethod::acf) return addByCorrelation(record);
  std::vector<IterationSample> done;
  count(record);
  noteSilence(record.leave);
  noteSizes(record);
  const TrackedCall call{.hash = callHash(record, sizesCount_),
                         .time = record.leave,
                         .bytes = static_cast<float>(bytesOfCall(record)),
                         .collective = !isPointToPoint(record.operation),
                         .number = ++calls_ & 0x7fffffffu};
  const auto boundaryOf = [&](CommunicatorId id) {
    Track* track = trackOf(id, record.leave);
    return track ? feed(id, *track, call) : std::nullopt;
  };
  const int before = changes_;
  const auto own = boundaryOf(record.communicator);
  const auto together = tracks_.size() > 1 ? boundaryOf(allTogether) : std::nullopt;
  bool ended = false, matched = false;
  const auto endBy = [&](CommunicatorId id, const std::optional<PatternTracker::Boundary>& boundary) {
    if (chosen_ != id || !boundary) return;
    ended = true;
    matched = boundary->matched;
  };
  endBy(record.communicator, own);
  endBy(allTogether, together);
  if (chosen_ && !tracks_.at(*chosen_).tracker.following()) open_ = false;
  if (ended) {
    ++boundaries_;
    ++cuts_;
    if (const int generation = tracks_.at(*chosen_).tracker.generation(); generation != chosenGeneration_) {
      chosenGeneration_ = generation;
      cuts_ = 0;
      changed();
      periods_.clear();
    }
    if (open_) done.push_back(close(matched, record.leave));
    open(record.leave);
  }
  const bool due = (own || together) && record.leave - considered_ >= considerInterval;
  if (due || changes_ != before) choose(record.leave);
  return done;
}

/// While the whole process makes no call (it was stopped, or writes a checkpoint) the chosen communicator is not gone.
/// Once for each of its boundaries: where it is gone, the calls of others may be as far apart.
void PeriodFinder::noteSilence(Nanoseconds now) {
  const Nanoseconds before = std::exchange(lastCall_, now);
  if (!chosen_) return;
  const PatternTracker& tracker = tracks_.at(*chosen_).tracker;
  if (now - before > 4 * tracker.interval() && tracker.lastBoundary() >= resumed_) resumed_ = now;
}

/// Sizes stop counting once, for good. A loop over micro-batches is followed for a while in such jobs, too: their
/// sizes are the same within an iteration.
void PeriodFinder::noteSizes(const CallRecord& record) {
  if (!sizesCount_) return;
  if (following() && boundaries_ >= static_cast<std::uint64_t>(options_.pattern.establishedRepeats))
    return variety_.clear();
  if (!variety_.add(record)) return;
  sizesCount_ = false;
  tracks_.clear();
  chosen_.reset();
  open_ = false;
}

std::optional<PatternTracker::Boundary> PeriodFinder::feed(CommunicatorId id, Track& track, const TrackedCall& call) {
  const int generation = track.tracker.generation();
  const auto boundary = track.tracker.add(call);
  track.lastCall = call.time;
  if (track.tracker.generation() != generation) {
    ++changes_;
    track.cutFirst = track.cutLast = track.intervals = 0;
  }
  if (!boundary || id == chosen_) return boundary;
  if (track.cutFirst == 0)
    track.cutFirst = boundaries_;
  else
    ++track.intervals;
  track.cutLast = boundaries_;
  track.leastBefore = std::exchange(track.least, -1);
  return boundary;
}

std::vector<IterationSample> PeriodFinder::addByCorrelation(const CallRecord& record) {
  std::vector<IterationSample> done;
  count(record);
  const std::size_t before = correlation_.period();
  const bool boundary = correlation_.add(static_cast<std::uint8_t>(record.operation));
  if (correlation_.period() != before) {
    open_ = false;
    changed();
    periods_.clear();
    chosenSince_ = record.leave;
  }
  if (!boundary) return done;
  if (open_) done.push_back(close(true, record.leave));
  open(record.leave);
  return done;
}

/// Null: there are too many communicators, and all are in use.
PeriodFinder::Track* PeriodFinder::trackOf(CommunicatorId id, Nanoseconds now) {
  if (const auto found = tracks_.find(id); found != tracks_.end()) return &found->second;
  if (tracks_.size() >= trackedCommunicators) {
    constexpr Nanoseconds surelyGone = 20s;
    auto oldest = tracks_.end();
    for (auto track = tracks_.begin(); track != tracks_.end(); ++track)
      if (track->first != chosen_ && (oldest == tracks_.end() || track->second.lastCall < oldest->second.lastCall))
        oldest = track;
    if (now - oldest->second.lastCall < surelyGone) return nullptr;
    tracks_.erase(oldest);
  }
  Track* track = &tracks_.emplace(id, Track{PatternTracker(options_.pattern), boundaries_, {}}).first->second;
  for (auto& [other, each] : tracks_) each.tracker.limitWindow(rememberedCalls / tracks_.size());
  return track;
}

/// The communicator whose anchor recurs least often.
void PeriodFinder::choose(Nanoseconds now) {
  considered_ = now;
  const Track* current = chosen_ ? &tracks_.at(*chosen_) : nullptr;
  Nanoseconds usual{0};
  bool gone = false;
  if (current) {
    const PatternTracker& tracker = current->tracker;
    if (tracker.generation() != chosenGeneration_) return take(*chosen_, now), choose(now);
    // A pattern that was lost is waited for, but not for ever: the communicator may have been destroyed.
    usual = std::max(tracker.interval(), Nanoseconds(1));
    const Nanoseconds heard = std::max(tracker.lastBoundary(), resumed_);
    gone = tracker.following() ? now - heard > 20 * usual : now - current->lastCall > 20s;
    if (!gone && boundaries_ >= static_cast<std::uint64_t>(options_.pattern.establishedRepeats) &&
        now - chosenSince_ >= options_.pattern.establishedTime)
      return;
    if (gone) usual = Nanoseconds(0);
  }
  const bool undecided = current && current->tracker.settled() && cuts_ < undecidedCuts;
  std::optional<CommunicatorId> best, better;
  for (const auto& [id, track] : tracks_) {
    const Nanoseconds interval = track.tracker.interval();
    if (id == chosen_ || !track.tracker.following() || interval.count() == 0) continue;
    if (now - track.tracker.lastBoundary() > 4 * interval) continue;
    // Threads in any order look regular for a moment.
    if (id == allTogether && current && (!track.tracker.settled() || 2 * track.tracker.length() <= 3 * period()))
      continue;
    if (id == allTogether && current && isOneOrderOfSeveral(track)) continue;
    // Clearly longer: communicators that take part in the same iterations recur equally often.
    const bool longer = track.intervals >= 3 && !gone ? 2 * (track.cutLast - track.cutFirst) > 3 * track.intervals
                                                      : 2 * interval > 3 * usual;
    if (!longer) {
      if (!best && undecided && isBetterCut(track, tracks_.at(better.value_or(*chosen_)))) better = id;
      continue;
    }
    if (current && !gone && !best && isOccasional(track, usual)) continue;
    best = id, usual = interval;
  }
  if (best) return take(*best, now);
  if (better && ++swaps_ <= mostSwaps) cutBy(*better);
}

/// Of communicators that recur equally often, the iteration is cut by the one whose anchor is rarer, or has the longer
/// time behind it (see PatternTracker::newestBeforeQuiet); where that says nothing, by one that another thread's work
/// does not shift.
bool PeriodFinder::isBetterCut(const Track& candidate, const Track& chosen) const {
  const PatternTracker &other = candidate.tracker, &present = chosen.tracker;
  if (!other.settled() || 3 * other.interval() <= 2 * present.interval()) return false;
  if (other.anchoredOnCollective() != present.anchoredOnCollective()) return other.anchoredOnCollective();
  if (other.anchorsInRepeat() != present.anchorsInRepeat()) return other.anchorsInRepeat() < present.anchorsInRepeat();
  const auto behindOther = quietBehind(other), behindPresent = quietBehind(present);
  if (behindOther && behindPresent) {
    if (*behindOther > 2 * *behindPresent) return true;
    if (*behindPresent > 2 * *behindOther) return false;
  }
  return 3 * other.spread() < present.spread() && present.spread() * 100 > present.interval();
}

/// The least time from a boundary to the next one of any sequence that recurs as often and has as rare an anchor.
std::optional<Nanoseconds> PeriodFinder::quietBehind(const PatternTracker& tracker) const {
  if (tracks_.size() > mostCompared) return std::nullopt;
  std::vector<Nanoseconds> all;
  for (const auto& [id, track] : tracks_) {
    const PatternTracker& other = track.tracker;
    if (id == allTogether || !other.settled() || other.anchorsInRepeat() > tracker.anchorsInRepeat()) continue;
    if (other.anchoredOnCollective() != tracker.anchoredOnCollective()) continue;
    if (3 * other.interval() <= 2 * tracker.interval() || 2 * other.interval() >= 3 * tracker.interval()) continue;
    for (const PatternTracker::Cut& cut : other.boundaries()) all.push_back(cut.time);
  }
  std::sort(all.begin(), all.end());
  std::optional<Nanoseconds> least;
  for (const PatternTracker::Cut& cut : tracker.boundaries())
    if (const auto next = std::upper_bound(all.begin(), all.end(), cut.time); next != all.end())
      least = std::min(least.value_or(Nanoseconds::max()), *next - cut.time);
  return least;
}

/// All along what repeats, every iteration made the same calls on every communicator: only the order changed, as the
/// threads came, and it changed to and fro by chance.
bool PeriodFinder::isOneOrderOfSeveral(const Track& together) const {
  return callsAlike_ >= together.tracker.length();
}

/// What happens on the candidate belongs to every so-many-th iteration of the chosen communicator.
bool PeriodFinder::isOccasional(const Track& candidate, Nanoseconds usual) const {
  if (periods_.empty()) return false;
  // Before they were counted for the first time, any round number is possible where the times do not exclude one.
  std::size_t repeats = 0;
  const double ratio = seconds(candidate.tracker.interval()) / seconds(usual);
  if (candidate.intervals > 0)
    repeats = (candidate.cutLast - candidate.cutFirst + candidate.intervals / 2) / candidate.intervals;
  else if (ratio > 8)
    repeats = static_cast<std::size_t>(ratio / 10 + 1) * 10;
  const double ofIterations =
      static_cast<double>(repeats) * std::max(0.0, std::max(candidate.least, candidate.leastBefore));
  return isOccasionalStep({.repeats = repeats,
                           .innerBytes = lastBytes_,
                           .onceBytes = candidate.tracker.bytes() - ofIterations,
                           .innerKinds = lastShares_ + tracks_.at(*chosen_).tracker.kinds() - 1,
                           .innerHasCollective = hasCollective_,
                           .innerTime = usual});
}

/// After a change of ours, and where calls were lost, what is found again counts as the same pattern.
void PeriodFinder::changed() {
  carried_.clear();
  if (silent_ == 0) ++patterns_;
}

void PeriodFinder::take(CommunicatorId communicator, Nanoseconds now) {
  chosen_ = communicator;
  chosenSince_ = now;
  chosenGeneration_ = tracks_.at(communicator).tracker.generation();
  boundaries_ = 0;
  cuts_ = 0;
  plainTime_ = extraTime_ = Nanoseconds(0);
  for (auto& [id, track] : tracks_) {
    track.firstBoundary = track.cutFirst = track.cutLast = track.intervals = 0;
    track.least = -1;
    track.leastBefore = 0;
  }
  changed();
  periods_.clear();
  open_ = false;
}

/// The same iterations, cut elsewhere: neither another pattern nor a reason to wait.
void PeriodFinder::cutBy(CommunicatorId communicator) {
  chosen_ = communicator;
  chosenGeneration_ = tracks_.at(communicator).tracker.generation();
  for (auto& [id, track] : tracks_) {
    track.cutFirst = track.cutLast = track.intervals = 0;
    track.least = -1;
    track.leastBefore = 0;
  }
  open_ = false;
}

bool PeriodFinder::following() const {
  if (options_.method == PeriodMethod::acf) return correlation_.period() != 0;
  return chosen_ && tracks_.at(*chosen_).tracker.following();
}

std::size_t PeriodFinder::period() const {
  if (!periods_.empty()) {
    const auto differs = [&](std::size_t calls) { return calls != periods_.back(); };
    if (std::none_of(periods_.end() - std::min<std::ptrdiff_t>(std::ssize(periods_), 8), periods_.end(), differs))
      return periods_.back();
    std::size_t sum = 0;
    for (const std::size_t each : periods_) sum += each;
    return (sum + periods_.size() / 2) / periods_.size();
  }
  if (options_.method == PeriodMethod::acf) return correlation_.period();
  if (!chosen_) return 0;
  const PatternTracker& tracker = tracks_.at(*chosen_).tracker;
  return tracker.following() ? tracker.callsBetween() : 0;
}

bool PeriodFinder::isProvisional(const Track& chosen, Nanoseconds now) const {
  if (!chosen.tracker.settled() || now - chosenSince_ < options_.settleTime) return true;
  // Some equal calls in a row, and for long there are others that never repeat: no iteration.
  if (extraTime_ > 100 * plainTime_) return true;
  // A communicator that has called since and has no pattern yet may belong to a longer iteration. One that came when
  // the period was old, or never gets a pattern (expert parallelism), does not.
  constexpr std::uint64_t young = 16, patience = 128;
  if (boundaries_ > patience) return false;
  for (const auto& [id, track] : tracks_)
    if (id != allTogether && !track.tracker.following() && track.lastCall > chosenSince_ && track.firstBoundary < young)
      return true;
  return false;
}

/// The chosen sequence's calls were as ever. Where all iterations before had the same number of calls, another number
/// says that other communicators had more or fewer; eight times in a row, and that is the pattern now.
bool PeriodFinder::hasOtherCalls(std::size_t calls) {
  constexpr std::ptrdiff_t steady = 8;
  // Between threads in any order the number changes all the time, and says nothing.
  unsteady_ = calls != lastCalls_ ? std::min(unsteady_ + 4, 16) : std::max(0, unsteady_ - 1);
  lastCalls_ = calls;
  const auto newest = periods_.end() - std::min(std::ssize(periods_), steady);
  const bool wereSteady = std::ssize(periods_) >= steady && std::all_of(newest, periods_.end(), [&](std::size_t each) {
                            return each == periods_.back();
                          });
  if (!wereSteady || calls == periods_.back() || unsteady_ > 12) {
    others_ = 0;
    return false;
  }
  others_ = calls == otherCalls_ ? others_ + 1 : 1;
  otherCalls_ = calls;
  if (others_ < steady) return true;
  changed();
  periods_.clear();
  others_ = 0;
  return false;
}

void PeriodFinder::count(const CallRecord& record) {
  if (!open_) return;
  const Nanoseconds enter = std::max(record.enter, start_);
  busy_.add(enter, record.leave);
  bytes_ += bytesOfCall(record);
  collectives_ += !isPointToPoint(record.operation);
  Share& share = shares_[record.communicator];
  share.bytes += bytesOfCall(record);
  share.busy.add(enter, record.leave);
  ++share.calls;
}

void PeriodFinder::open(Nanoseconds now) {
  open_ = true;
  start_ = now;
  busy_ = {};
  bytes_ = 0;
  collectives_ = 0;
  shares_.clear();
}

/// Of an iteration without other calls. Gradients are as many bytes whatever the sequences.
double PeriodFinder::workOf() {
  if (sizesCount_) return 0;
  double work = 0;
  for (const auto& [id, share] : shares_) {
    const auto [found, isNew] = carried_.try_emplace(id, Carried{share.bytes, false});
    Carried& carried = found->second;
    carried.varies = carried.varies || carried.bytes != share.bytes;
    carried.bytes = share.bytes;
    if (carried.varies) work += share.bytes;
  }
  std::erase_if(carried_, [&](const auto& each) { return !shares_.contains(each.first); });
  return work;
}

IterationSample PeriodFinder::close(bool matched, Nanoseconds now) {
  IterationSample sample;
  sample.index = index_++;
  sample.start = start_;
  sample.duration = now - start_;
  sample.inLibrary = std::min(busy_.total(), sample.duration);
  sample.outside = sample.duration - sample.inLibrary;
  sample.provisional = options_.method == PeriodMethod::acf ? now - chosenSince_ < options_.settleTime
                                                            : isProvisional(tracks_.at(*chosen_), now);
  sample.extraCalls = !matched;
  sample.pattern = patterns_;
  std::size_t calls = 0, mix = 0;
  for (const auto& [id, share] : shares_) {
    sample.communicators.push_back({id, share.busy.total(), share.calls});
    calls += share.calls;
    mix = mix * 31 + id + share.calls;
  }
  callsAlike_ = (std::exchange(lastMix_, mix) == mix ? callsAlike_ : 0) + calls;
  lastBytes_ = bytes_;
  hasCollective_ = collectives_ > 0;
  lastShares_ = shares_.size();
  for (auto& [id, track] : tracks_) {
    const auto share = shares_.find(id);
    const double bytes = id == allTogether ? bytes_ : share == shares_.end() ? 0 : share->second.bytes;
    track.least = track.least < 0 ? bytes : std::min(track.least, bytes);
  }
  if (matched) sample.work = workOf();
  if (matched && hasOtherCalls(calls)) sample.extraCalls = true;
  (sample.extraCalls ? extraTime_ : plainTime_) += sample.duration;
  if (sample.extraCalls) return sample;
  if (silent_ > 0 && !sample.provisional) --silent_;
  sample.pattern = patterns_;
  periods_.push_back(calls);
  if (periods_.size() > averagedIterations) periods_.pop_front();
  return sample;
}

void PeriodFinder::rebase() {
  for (auto& [id, track] : tracks_) track.tracker.rebase();
  correlation_.reset();
  periods_.clear();
  silent_ = silentIterations;
}

void PeriodFinder::overrun(std::uint64_t lost) {
  lost_ += lost;
  for (auto& [id, track] : tracks_) track.tracker.interrupt();
  correlation_.reset();
  silent_ = silentIterations;
  open_ = false;
}

}  // namespace falcon::instrument
