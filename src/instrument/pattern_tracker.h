// The repeating pattern in one communicator's calls.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "base/clock.h"

namespace falcon::instrument {

/// A period found in a sequence: the newest `covered` values repeat every `length`, at least three times.
struct Repetition {
  std::size_t length = 0, covered = 0;
};

/// The longest suffix of `values` (oldest first) that consists of three or more repeats, and its shortest period. The
/// longest, so that an inner loop, which repeats too, does not hide the iteration around it. Time linear in the size
/// (prefix function of the reversed sequence).
/// @param missing  how many more values make three repeats of the longest suffix that is two, if they continue it; 0:
///                 there is none
std::optional<Repetition> newestRepetition(std::span<const std::uint64_t> values, std::size_t* missing = nullptr);

/// A call as the tracker sees it.
struct TrackedCall {
  std::uint64_t hash = 0;
  Nanoseconds time{0};
  float bytes = 0;
  std::uint32_t collective : 1 = 0;
  std::uint32_t number : 31 = 0;  ///< among all communicators' calls, modulo 2^31
};

struct PatternOptions {
  /// What has recurred so often, and for so long, without anything else is the iteration: other calls that come later
  /// (evaluation, checkpoints) are extras in it. Anything seen sooner is taken for a part of a longer iteration, since
  /// a loop over micro-batches looks just the same; but see occasional_step.h.
  int establishedRepeats = 64;
  Nanoseconds establishedTime = 60s;
  std::size_t window = 1 << 16;  ///< calls that are remembered: periods up to a third of it are found
};

/// Finds the pattern, picks one of its rarest calls as the anchor, and from then on cuts the sequence at the anchor:
/// extra calls lengthen a segment and lose nothing. Three equal segments in a row that differ from the pattern are the
/// new pattern. Amortised constant work a call. Used by one thread.
class PatternTracker {
 public:
  explicit PatternTracker(const PatternOptions& options) : options_(options) {}

  /// A segment ended with this call. `matched`: it was the pattern and nothing else.
  struct Boundary {
    bool matched = false;
  };
  std::optional<Boundary> add(const TrackedCall& call);
  /// When it was, and the anchor's number among all calls.
  struct Cut {
    Nanoseconds time{0};
    std::uint32_t number = 0;
  };
  /// The newest, oldest first.
  const std::deque<Cut>& boundaries() const { return boundaries_; }

  /// The pattern was changed on purpose: learns the new one, silently.
  void rebase();
  /// Calls were lost: what lies between the anchors around the gap is not judged.
  void interrupt();
  /// Remembers at most so many calls from now on, if that is less than the options allow.
  void limitWindow(std::size_t calls) { limit_ = calls; }

  bool following() const { return following_; }
  /// The pattern has been seen three times, and nothing speaks for a longer one.
  bool settled() const { return following_ && target_ != 0 && cleanRepeats_ >= 3 && !unsettled_; }
  bool established(Nanoseconds now) const;
  /// Median time between boundaries; 0 while unknown.
  Nanoseconds interval() const;
  /// Longest less shortest of the last times between boundaries; the largest while there are fewer than eight
  /// boundaries.
  Nanoseconds spread() const;
  Nanoseconds lastBoundary() const { return boundaries_.empty() ? Nanoseconds(0) : boundaries_.back().time; }
  /// Calls of all communicators between the last two boundaries.
  std::size_t callsBetween() const;
  /// Calls of one repeat.
  std::size_t length() const { return length_; }
  /// Bytes that the calls of one repeat carry.
  double bytes() const { return bytes_; }
  bool anchoredOnCollective() const { return collectiveAnchor_; }
  /// How often the anchor's call occurs in one repeat.
  int anchorsInRepeat() const { return anchorsPerSegment_; }
  /// Different calls in one repeat.
  std::size_t kinds() const { return kinds_; }
  /// How often a pattern was found or changed without a rebase.
  int generation() const { return generation_; }

 private:
  std::size_t window() const;
  std::optional<Repetition> search();
  void follow(const Repetition& found, Nanoseconds now);
  std::size_t newestBeforeQuiet(const std::map<std::uint64_t, int>& uses) const;
  void lose();
  Boundary endSegment(const TrackedCall& anchor);
  void judge(Nanoseconds now);
  void adopt(Nanoseconds now);
  void addBoundary(const TrackedCall& anchor);
  void reconsider(Nanoseconds now);
  bool onlyAddsAStep(const Repetition& longer) const;

  const PatternOptions options_;
  std::size_t limit_ = SIZE_MAX;
  std::deque<TrackedCall> calls_;
  std::size_t sinceSearch_ = 0, searchAfter_ = 0;
  int generation_ = 0;

  bool following_ = false;
  std::size_t length_ = 0;    // calls of the pattern
  double bytes_ = 0;          // that they carry
  std::uint64_t target_ = 0;  // hash of the pattern from after its anchor to the next; 0: to be learnt
  std::uint64_t known_ = 0;   // the last pattern followed, also while it is lost
  std::uint64_t anchor_ = 0;
  bool collectiveAnchor_ = false;
  std::size_t kinds_ = 0;
  int anchorsPerSegment_ = 1, anchorsSeen_ = 0;
  std::uint64_t segment_ = 0;  // hash of the segment so far
  std::size_t segmentLength_ = 0;
  double segmentBytes_ = 0;
  bool interrupted_ = false;  // the segment misses calls
  bool planned_ = false;      // the next adoption follows a rebase
  std::deque<Cut> boundaries_;

  int cleanRepeats_ = 0;
  Nanoseconds cleanSince_{0};
  bool unsettled_ = false, tolerant_ = false;
  bool shifted_ = false;  // extra anchors have moved the cuts
  int oddInARow_ = 0, sameOdd_ = 0, odd_ = 0, segments_ = 0;
  // Matching segments since the last odd one and the most between two; calls since the pattern became unsettled.
  std::size_t run_ = 0, longestRun_ = 0, sinceUnsettled_ = 0;
  Nanoseconds oddSince_{0}, usualInterval_{0};
  std::uint64_t lastOdd_ = 0;
};

}  // namespace falcon::instrument
