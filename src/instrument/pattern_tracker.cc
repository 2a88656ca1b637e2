#include "instrument/pattern_tracker.h"

#include <algorithm>
#include <limits>
#include <set>
#include <tuple>
#include <utility>

#include "instrument/occasional_step.h"

namespace falcon::instrument {
namespace {

constexpr std::size_t keptBoundaries = 8;
constexpr std::size_t triedAnchors = 16;

std::uint64_t extend(std::uint64_t hash, std::uint64_t next) {
  hash = (hash ^ next) * 0x9fb21c651e98df25ULL;
  return (hash ^ hash >> 35) | 1;  // never 0, which stands for "unknown"
}

}  // namespace

std::optional<Repetition> newestRepetition(std::span<const std::uint64_t> values, std::size_t* missing) {
  const std::size_t size = values.size();
  const auto newest = [&](std::size_t i) { return values[size - 1 - i]; };
  std::vector<std::uint32_t> border(size, 0);
  std::optional<Repetition> best;
  if (missing) *missing = 0;
  for (std::size_t i = 1; i < size; ++i) {
    std::size_t match = border[i - 1];
    while (match > 0 && newest(i) != newest(match)) match = border[match - 1];
    if (newest(i) == newest(match)) ++match;
    border[i] = static_cast<std::uint32_t>(match);
    const std::size_t covered = i + 1, length = covered - match;
    if (covered >= 3 * length) best = Repetition{length, covered};
    if (missing && covered >= 2 * length) *missing = covered < 3 * length ? 3 * length - covered : 0;
  }
  return best;
}

std::optional<PatternTracker::Boundary> PatternTracker::add(const TrackedCall& call) {
  calls_.push_back(call);
  while (calls_.size() > window()) calls_.pop_front();
  ++sinceSearch_;
  if (!following_) {
    if (sinceSearch_ < searchAfter_) return std::nullopt;
    if (const auto found = search()) follow(*found, call.time);
    return std::nullopt;
  }
  segment_ = extend(segment_, call.hash);
  ++segmentLength_;
  segmentBytes_ += call.bytes;
  std::optional<Boundary> boundary;
  if (call.hash == anchor_ && ++anchorsSeen_ == anchorsPerSegment_) boundary = endSegment(call);
  if (following_) reconsider(call.time);
  return boundary;
}

/// An established pattern is left only after it stayed away for long: little need be remembered meanwhile.
std::size_t PatternTracker::window() const {
  const std::size_t most = std::min(options_.window, limit_);
  return !calls_.empty() && established(calls_.back().time) ? std::min(most, 4 * length_ + 1024) : most;
}

/// A search costs as much as the window is long: it comes rarer as that fills, but when what was seen twice would have
/// been seen three times.
std::optional<Repetition> PatternTracker::search() {
  sinceSearch_ = 0;
  std::vector<std::uint64_t> hashes;
  hashes.reserve(calls_.size());
  for (const TrackedCall& call : calls_) hashes.push_back(call.hash);
  std::size_t missing = 0;
  const auto found = newestRepetition(hashes, &missing);
  const std::size_t usual = std::max<std::size_t>(1, calls_.size() / 16);
  searchAfter_ = missing > 0 && missing <= 2 * usual ? std::max(missing, usual / 8) : usual;
  return found;
}

/// Where to cut the pattern whose last repeat has these calls: the newest call of the kind and place after which no
/// other one that is as rare comes for the longest time. What comes once an iteration (gradients, the norm, the loss)
/// comes at its end, and the next iteration begins with a long time without any: behind the last of them one is nearest
/// to what the application takes for its iterations' border. Collectives are preferred, since they end everywhere at
/// the same time.
std::size_t PatternTracker::newestBeforeQuiet(const std::map<std::uint64_t, int>& uses) const {
  const std::size_t size = calls_.size(), from = size - 3 * length_;
  int rarest = std::numeric_limits<int>::max();
  for (const auto& [hash, count] : uses) rarest = std::min(rarest, count);
  const auto isRare = [&](const TrackedCall& call) { return uses.find(call.hash)->second == rarest; };
  bool collective = false;
  for (std::size_t i = size - length_; i < size; ++i)
    collective = collective || (calls_[i].collective && isRare(calls_[i]));
  // The least of three repeats: one that was held up says nothing.
  std::vector<Nanoseconds> quiet(length_, Nanoseconds(-1));
  std::size_t before = size;
  for (std::size_t i = from; i < size; ++i) {
    if (calls_[i].collective != collective || !isRare(calls_[i])) continue;
    if (before < size) {
      Nanoseconds& least = quiet[(before - from) % length_];
      const Nanoseconds time = calls_[i].time - calls_[before].time;
      least = least.count() < 0 ? time : std::min(least, time);
    }
    before = i;
  }
  std::size_t best = before;
  for (std::size_t i = size - length_; i < size; ++i) {
    const auto rank = [&](std::size_t j) {
      return std::make_tuple(quiet[(j - from) % length_], calls_[j].bytes, calls_[j].hash);
    };
    if (rank(i) > rank(best)) best = i;
  }
  return best;
}

void PatternTracker::follow(const Repetition& found, Nanoseconds now) {
  const std::uint64_t formerAnchor = anchor_;
  lose();
  following_ = true;
  length_ = found.length;
  bytes_ = 0;
  std::map<std::uint64_t, int> uses;
  for (std::size_t i = calls_.size() - length_; i < calls_.size(); ++i) {
    ++uses[calls_[i].hash];
    bytes_ += calls_[i].bytes;
  }
  kinds_ = uses.size();

  const auto targetOf = [&](std::size_t end) {
    std::uint64_t hash = 0;
    for (std::size_t i = end + 1 - length_; i <= end; ++i) hash = extend(hash, calls_[i].hash);
    return hash;
  };
  // A pattern that was followed before, and lost, is cut where it was.
  std::size_t last = calls_.size();
  bool same = false;
  if (known_ != 0 && uses.contains(formerAnchor)) {
    std::size_t end = calls_.size();
    for (std::size_t tried = 0; !same && tried < triedAnchors && end + length_ > calls_.size();) {
      if (calls_[--end].hash != formerAnchor) continue;
      ++tried;
      if (targetOf(end) == known_) last = end, same = true;
    }
  }
  if (!same) last = newestBeforeQuiet(uses);
  anchor_ = calls_[last].hash;
  collectiveAnchor_ = calls_[last].collective;
  anchorsPerSegment_ = uses[anchor_];
  target_ = targetOf(last);
  for (std::size_t i = last + 1; i < calls_.size(); ++i) anchorsSeen_ += calls_[i].hash == anchor_;
  known_ = target_;
  if (!planned_ && !same) ++generation_;
  planned_ = false;
  for (std::size_t i = last + 1; i < calls_.size(); ++i) {
    segment_ = extend(segment_, calls_[i].hash);
    segmentBytes_ += calls_[i].bytes;
  }
  segmentLength_ = calls_.size() - 1 - last;
  addBoundary(calls_[last - length_]);
  addBoundary(calls_[last]);
  cleanRepeats_ = static_cast<int>(found.covered / found.length);
  cleanSince_ = now;
}

void PatternTracker::lose() {
  following_ = false;
  target_ = segment_ = lastOdd_ = 0;
  segmentLength_ = 0;
  segmentBytes_ = 0;
  searchAfter_ = std::max<std::size_t>(1, calls_.size() / 16);
  run_ = longestRun_ = sinceUnsettled_ = 0;
  anchorsSeen_ = cleanRepeats_ = oddInARow_ = sameOdd_ = odd_ = segments_ = 0;
  interrupted_ = unsettled_ = tolerant_ = shifted_ = false;
  boundaries_.clear();
}

PatternTracker::Boundary PatternTracker::endSegment(const TrackedCall& anchor) {
  const bool matched = !interrupted_ && segment_ == target_;
  addBoundary(anchor);
  if (!interrupted_) judge(anchor.time);
  interrupted_ = false;
  anchorsSeen_ = 0;
  segment_ = 0;
  segmentLength_ = 0;
  segmentBytes_ = 0;
  return {matched};
}

void PatternTracker::judge(Nanoseconds now) {
  ++segments_;
  if (segment_ == target_) {
    ++cleanRepeats_;
    ++run_;
    oddInARow_ = sameOdd_ = 0;
    return;
  }
  const bool wasEstablished = established(now);
  ++odd_;
  if (++oddInARow_ == 1) oddSince_ = now, usualInterval_ = interval();
  sameOdd_ = segment_ == lastOdd_ ? sameOdd_ + 1 : 1;
  lastOdd_ = segment_;
  // An evaluation may have a loop of its own around the anchor: an established pattern is waited for.
  const bool patient = wasEstablished && now - oddSince_ < 10 * usualInterval_;
  // Extra anchors shift what is between the others.
  if (sameOdd_ == 3 && anchorsPerSegment_ > 1) shifted_ = true;
  if (sameOdd_ >= 3 && !patient && !shifted_) return adopt(now);
  if (oddInARow_ >= 8 && !patient) return lose();  // the anchor no longer cuts anything
  longestRun_ = std::max(longestRun_, std::exchange(run_, 0));
  if (wasEstablished || target_ == 0) return;
  if (!std::exchange(unsettled_, true)) sinceUnsettled_ = 0;
  cleanRepeats_ = 0;
  cleanSince_ = now;
}

void PatternTracker::adopt(Nanoseconds now) {
  if (!planned_) ++generation_;
  planned_ = unsettled_ = tolerant_ = false;
  target_ = known_ = segment_;
  length_ = segmentLength_;
  bytes_ = segmentBytes_;
  cleanRepeats_ = 3;
  cleanSince_ = now;
  oddInARow_ = sameOdd_ = odd_ = segments_ = 0;
}

/// Looks for a longer pattern while something speaks for one, and for any when the anchor stays away.
void PatternTracker::reconsider(Nanoseconds now) {
  if (std::exchange(shifted_, false))
    if (const auto found = search()) return follow(*found, now);
  if (unsettled_ && cleanRepeats_ >= options_.establishedRepeats && now - cleanSince_ >= options_.establishedTime)
    unsettled_ = false;
  // Were the odd segments regular, the longer pattern would have been found by now.
  if (unsettled_) ++sinceUnsettled_;
  if (unsettled_ && odd_ >= 8 && odd_ * 10 <= segments_ && sinceUnsettled_ >= 4 * longestRun_ * length_)
    unsettled_ = false, tolerant_ = true;

  // A young pattern may have been of the job's start.
  const bool young = cleanRepeats_ < 16;
  const bool away = segmentLength_ > (young ? 2 * length_ + 8 : 4 * length_ + 64) ||
                    (young && segmentLength_ > length_ && now - lastBoundary() > 8 * interval());
  if (!unsettled_ && !away) return;
  if (sinceSearch_ < std::max<std::size_t>(searchAfter_, 4)) return;
  const auto found = search();
  if (away && (!established(now) || now - lastBoundary() > 10 * interval())) {
    if (found)
      follow(*found, now);
    else
      lose();
  } else if (unsettled_ && found && found->length > length_) {
    if (onlyAddsAStep(*found))
      unsettled_ = false, tolerant_ = true;
    else
      follow(*found, now);
  }
}

/// Whether the longer pattern is so many repeats of the one that is followed, and occasional steps between them.
bool PatternTracker::onlyAddsAStep(const Repetition& longer) const {
  const auto repeats = [&](std::size_t i) { return calls_[i].hash == calls_[i - length_].hash; };
  const std::size_t size = calls_.size();
  std::size_t start = size - 2 * longer.length;  // of a whole longer pattern that begins behind a break
  while (start < size - longer.length && repeats(start)) ++start;
  NestedPattern nested;
  std::uint64_t inner = 0;  // sum of the hashes of the longest run's pattern: the same wherever in it one begins
  struct Run {
    std::size_t repeats = 0;
    std::uint64_t sum = 0;
  };
  std::vector<Run> runs;
  for (std::size_t i = start, run = 0; i < start + longer.length; ++i) {
    nested.onceBytes += calls_[i].bytes;
    run = repeats(i) ? run + 1 : 0;
    const bool ends = run >= length_ && (i + 1 == start + longer.length || !repeats(i + 1));
    if (!ends) continue;
    Run ended{run / length_ + 1, 0};
    double bytes = 0;
    bool collective = false;
    std::set<std::uint64_t> different;
    for (std::size_t j = i + 1 - length_; j <= i; ++j) {
      ended.sum += calls_[j].hash;
      bytes += calls_[j].bytes;
      collective = collective || calls_[j].collective;
      different.insert(calls_[j].hash);
    }
    runs.push_back(ended);
    if (ended.repeats <= nested.repeats) continue;
    inner = ended.sum;
    nested.repeats = ended.repeats;
    nested.innerBytes = bytes;
    nested.innerHasCollective = collective;
    nested.innerKinds = different.size();
    nested.innerTime = calls_[i].time - calls_[i - length_].time;
  }
  bool round = true;  // steps at two intervals cut each other's runs
  for (const Run& run : runs) {
    if (run.sum != inner) continue;
    nested.onceBytes -= static_cast<double>(run.repeats) * nested.innerBytes;
    round = round && run.repeats % 5 == 0;
  }
  return round && isOccasionalStep(nested);
}

bool PatternTracker::established(Nanoseconds now) const {
  if (!following_ || unsettled_ || target_ == 0) return false;
  return tolerant_ || (cleanRepeats_ >= options_.establishedRepeats && now - cleanSince_ >= options_.establishedTime);
}

void PatternTracker::addBoundary(const TrackedCall& anchor) {
  boundaries_.push_back({anchor.time, anchor.number});
  if (boundaries_.size() > keptBoundaries) boundaries_.pop_front();
}

Nanoseconds PatternTracker::interval() const {
  if (boundaries_.size() < 2) return Nanoseconds(0);
  std::vector<Nanoseconds> gaps;
  for (std::size_t i = 1; i < boundaries_.size(); ++i) gaps.push_back(boundaries_[i].time - boundaries_[i - 1].time);
  std::nth_element(gaps.begin(), gaps.begin() + static_cast<std::ptrdiff_t>(gaps.size() / 2), gaps.end());
  return gaps[gaps.size() / 2];
}

Nanoseconds PatternTracker::spread() const {
  if (boundaries_.size() < keptBoundaries) return Nanoseconds::max() / 1000;
  Nanoseconds shortest = Nanoseconds::max(), longest{0};
  for (std::size_t i = 1; i < boundaries_.size(); ++i) {
    shortest = std::min(shortest, boundaries_[i].time - boundaries_[i - 1].time);
    longest = std::max(longest, boundaries_[i].time - boundaries_[i - 1].time);
  }
  return longest - shortest;
}

std::size_t PatternTracker::callsBetween() const {
  if (boundaries_.size() < 2) return 0;
  return (boundaries_.back().number - boundaries_[boundaries_.size() - 2].number) & 0x7fffffffu;
}

void PatternTracker::rebase() {
  calls_.clear();
  sinceSearch_ = 0;
  if (!following_ || anchorsPerSegment_ > 1) {
    // An anchor that occurs once a period still does; the number of others is part of what changes.
    lose();
  } else {
    target_ = lastOdd_ = 0;
    cleanRepeats_ = oddInARow_ = sameOdd_ = odd_ = segments_ = 0;
    unsettled_ = tolerant_ = false;
  }
  planned_ = true;
}

void PatternTracker::interrupt() {
  calls_.clear();
  sinceSearch_ = 0;
  if (!following_) return;
  if (anchorsPerSegment_ > 1)
    lose();
  else
    interrupted_ = true;
}

}  // namespace falcon::instrument
