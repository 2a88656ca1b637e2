// The repeating pattern in one communicator's calls.
#pragma once

#include <cstdint>
#include <deque>
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
std::optional<Repetition> newestRepetition(std::span<const std::uint64_t> values);

struct PatternOptions {
  /// What has recurred so often, and for so long, without anything else is the iteration: other calls that come later
  /// (evaluation, checkpoints) are extras in it. Anything seen sooner is taken for a part of a longer iteration, since
  /// a loop over micro-batches looks just the same.
  int establishedRepeats = 64;
  Nanoseconds establishedTime = 60s;
  std::size_t window = 32768;  ///< calls that are remembered: periods up to a third of it are found
};

/// Finds the pattern, picks its rarest call as the anchor, and from then on cuts the sequence at the anchor: extra
/// calls lengthen a segment and lose nothing. Three equal segments in a row that differ from the pattern are the new
/// pattern. Amortised constant work a call. Used by one thread.
class PatternTracker {
 public:
  explicit PatternTracker(const PatternOptions& options) : options_(options) {}

  /// A segment ended with this call. `matched`: it was the pattern and nothing else.
  struct Boundary {
    bool matched = false;
  };
  /// @param weight  among equally rare calls the heaviest becomes the anchor
  std::optional<Boundary> add(std::uint64_t hash, std::uint64_t weight, Nanoseconds time);

  /// The pattern was changed on purpose: learns the new one, silently.
  void rebase();
  /// Calls were lost: what lies between the anchors around the gap is not judged.
  void interrupt();

  bool following() const { return following_; }
  /// The pattern has been seen three times, and nothing speaks for a longer one.
  bool settled() const { return following_ && target_ != 0 && cleanRepeats_ >= 3 && !unsettled_; }
  bool established(Nanoseconds now) const;
  /// Median time between boundaries; 0 while unknown.
  Nanoseconds interval() const;
  Nanoseconds lastBoundary() const { return boundaries_.empty() ? Nanoseconds(0) : boundaries_.back(); }
  /// How often a pattern was found or changed without a rebase.
  int generation() const { return generation_; }

 private:
  struct Call {
    std::uint64_t hash, weight;
    Nanoseconds time;
  };
  std::optional<Repetition> search();
  void follow(const Repetition& found, Nanoseconds now);
  void lose();
  Boundary endSegment(Nanoseconds now);
  void judge(Nanoseconds now);
  void adopt(Nanoseconds now);
  void addBoundary(Nanoseconds time);
  void reconsider(Nanoseconds now);

  const PatternOptions options_;
  std::deque<Call> calls_;
  std::size_t sinceSearch_ = 0;
  int generation_ = 0;

  bool following_ = false;
  std::size_t length_ = 0;    // calls of the pattern
  std::uint64_t target_ = 0;  // hash of the pattern from after its anchor to the next; 0: to be learnt
  std::uint64_t anchor_ = 0;
  int anchorsPerSegment_ = 1, anchorsSeen_ = 0;
  std::uint64_t segment_ = 0;  // hash of the segment so far
  std::size_t segmentLength_ = 0;
  bool interrupted_ = false;  // the segment misses calls
  bool planned_ = false;      // the next adoption follows a rebase
  std::deque<Nanoseconds> boundaries_;

  int cleanRepeats_ = 0;
  Nanoseconds cleanSince_{0};
  bool unsettled_ = false, tolerant_ = false;
  int oddInARow_ = 0, sameOdd_ = 0, odd_ = 0, segments_ = 0;
  std::uint64_t lastOdd_ = 0;
};

}  // namespace falcon::instrument
