#include "instrument/pattern_tracker.h"

#include <algorithm>
#include <map>

namespace falcon::instrument {
namespace {

constexpr std::size_t keptBoundaries = 8;

std::uint64_t extend(std::uint64_t hash, std::uint64_t next) {
  hash = (hash ^ next) * 0x9fb21c651e98df25ULL;
  return (hash ^ hash >> 35) | 1;  // never 0, which stands for "unknown"
}

}  // namespace

std::optional<Repetition> newestRepetition(std::span<const std::uint64_t> values) {
  const std::size_t size = values.size();
  const auto newest = [&](std::size_t i) { return values[size - 1 - i]; };
  std::vector<std::uint32_t> border(size, 0);
  std::optional<Repetition> best;
  for (std::size_t i = 1; i < size; ++i) {
    std::size_t match = border[i - 1];
    while (match > 0 && newest(i) != newest(match)) match = border[match - 1];
    if (newest(i) == newest(match)) ++match;
    border[i] = static_cast<std::uint32_t>(match);
    const std::size_t covered = i + 1, length = covered - match;
    if (covered >= 3 * length) best = Repetition{length, covered};
  }
  return best;
}

std::optional<PatternTracker::Boundary> PatternTracker::add(std::uint64_t hash, std::uint64_t weight,
                                                            Nanoseconds time) {
  calls_.push_back({hash, weight, time});
  if (calls_.size() > options_.window) calls_.pop_front();
  ++sinceSearch_;
  if (!following_) {
    // A search costs as much as the window is long: rarer as it fills.
    if (sinceSearch_ < std::max<std::size_t>(1, calls_.size() / 16)) return std::nullopt;
    if (const auto found = search()) follow(*found, time);
    return std::nullopt;
  }
  segment_ = extend(segment_, hash);
  ++segmentLength_;
  std::optional<Boundary> boundary;
  if (hash == anchor_ && ++anchorsSeen_ == anchorsPerSegment_) boundary = endSegment(time);
  if (following_) reconsider(time);
  return boundary;
}

std::optional<Repetition> PatternTracker::search() {
  sinceSearch_ = 0;
  std::vector<std::uint64_t> hashes;
  hashes.reserve(calls_.size());
  for (const Call& call : calls_) hashes.push_back(call.hash);
  return newestRepetition(hashes);
}

void PatternTracker::follow(const Repetition& found, Nanoseconds now) {
  struct Use {
    int count = 0;
    std::uint64_t weight = 0;
  };
  std::map<std::uint64_t, Use> uses;
  for (std::size_t i = calls_.size() - found.length; i < calls_.size(); ++i) {
    Use& use = uses[calls_[i].hash];
    ++use.count;
    use.weight = calls_[i].weight;
  }
  const auto anchor = std::min_element(uses.begin(), uses.end(), [](const auto& a, const auto& b) {
    if (a.second.count != b.second.count) return a.second.count < b.second.count;
    if (a.second.weight != b.second.weight) return a.second.weight > b.second.weight;
    return a.first < b.first;
  });
  lose();
  following_ = true;
  if (!planned_) ++generation_;
  planned_ = false;
  length_ = found.length;
  anchor_ = anchor->first;
  anchorsPerSegment_ = anchor->second.count;

  std::size_t last = calls_.size() - 1;  // the newest anchor: the segment in progress starts behind it
  while (calls_[last].hash != anchor_) --last;
  for (std::size_t i = last + 1 - length_; i <= last; ++i) target_ = extend(target_, calls_[i].hash);
  for (std::size_t i = last + 1; i < calls_.size(); ++i) segment_ = extend(segment_, calls_[i].hash);
  segmentLength_ = calls_.size() - 1 - last;
  addBoundary(calls_[last - length_].time);
  addBoundary(calls_[last].time);
  cleanRepeats_ = static_cast<int>(found.covered / found.length);
  cleanSince_ = now;
}

void PatternTracker::lose() {
  following_ = false;
  target_ = segment_ = lastOdd_ = 0;
  segmentLength_ = 0;
  anchorsSeen_ = cleanRepeats_ = oddInARow_ = sameOdd_ = odd_ = segments_ = 0;
  interrupted_ = unsettled_ = tolerant_ = false;
  boundaries_.clear();
}

PatternTracker::Boundary PatternTracker::endSegment(Nanoseconds now) {
  const bool matched = !interrupted_ && segment_ == target_;
  addBoundary(now);
  if (!interrupted_) judge(now);
  interrupted_ = false;
  anchorsSeen_ = 0;
  segment_ = 0;
  segmentLength_ = 0;
  return {matched};
}

void PatternTracker::judge(Nanoseconds now) {
  ++segments_;
  if (segment_ == target_) {
    ++cleanRepeats_;
    oddInARow_ = sameOdd_ = 0;
    return;
  }
  const bool wasEstablished = established(now);
  ++odd_;
  ++oddInARow_;
  sameOdd_ = segment_ == lastOdd_ ? sameOdd_ + 1 : 1;
  lastOdd_ = segment_;
  if (sameOdd_ >= 3) return adopt(now);
  if (oddInARow_ >= 8) return lose();  // the anchor no longer cuts anything
  if (wasEstablished || target_ == 0) return;
  unsettled_ = true;
  cleanRepeats_ = 0;
  cleanSince_ = now;
}

void PatternTracker::adopt(Nanoseconds now) {
  if (!planned_) ++generation_;
  planned_ = unsettled_ = tolerant_ = false;
  target_ = segment_;
  length_ = segmentLength_;
  cleanRepeats_ = 3;
  cleanSince_ = now;
  oddInARow_ = sameOdd_ = odd_ = segments_ = 0;
}

/// Looks for a longer pattern while something speaks for one, and for any when the anchor stays away.
void PatternTracker::reconsider(Nanoseconds now) {
  if (unsettled_ && cleanRepeats_ >= options_.establishedRepeats && now - cleanSince_ >= options_.establishedTime)
    unsettled_ = false;
  // Were the odd segments regular, the longer pattern would have been found by the fourth of them.
  if (unsettled_ && odd_ >= 5 && odd_ * 10 <= segments_) unsettled_ = false, tolerant_ = true;

  const bool away = segmentLength_ > 4 * length_ + 64;
  if (!unsettled_ && !away) return;
  if (sinceSearch_ < std::max<std::size_t>(16, calls_.size() / 16)) return;
  const auto found = search();
  if (away && (!established(now) || now - lastBoundary() > 10 * interval())) {
    if (found)
      follow(*found, now);
    else
      lose();
  } else if (unsettled_ && found && found->length > length_) {
    follow(*found, now);
  }
}

bool PatternTracker::established(Nanoseconds now) const {
  if (!following_ || unsettled_ || target_ == 0) return false;
  return tolerant_ || (cleanRepeats_ >= options_.establishedRepeats && now - cleanSince_ >= options_.establishedTime);
}

void PatternTracker::addBoundary(Nanoseconds time) {
  boundaries_.push_back(time);
  if (boundaries_.size() > keptBoundaries) boundaries_.pop_front();
}

Nanoseconds PatternTracker::interval() const {
  if (boundaries_.size() < 2) return Nanoseconds(0);
  std::vector<Nanoseconds> gaps;
  for (std::size_t i = 1; i < boundaries_.size(); ++i) gaps.push_back(boundaries_[i] - boundaries_[i - 1]);
  std::nth_element(gaps.begin(), gaps.begin() + static_cast<std::ptrdiff_t>(gaps.size() / 2), gaps.end());
  return gaps[gaps.size() / 2];
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
