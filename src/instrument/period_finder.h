// The iteration's period, from the calls alone: online, for one process.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "base/call.h"
#include "instrument/busy_time.h"
#include "instrument/pattern_tracker.h"

namespace falcon::instrument {

/// Time of one iteration inside the library for one communicator.
struct CommunicatorShare {
  CommunicatorId id = 0;
  Nanoseconds inLibrary{0};
  std::uint64_t calls = 0;
};

/// One iteration, from the end of one anchor call to the end of the next. duration = inLibrary + outside.
struct IterationSample {
  std::uint64_t index = 0;
  Nanoseconds start{0};
  Nanoseconds duration{0};
  Nanoseconds inLibrary{0};  ///< some thread was inside the library; overlapping calls count once
  Nanoseconds outside{0};
  std::vector<CommunicatorShare> communicators;
  bool provisional = false;   ///< the period has not been seen three times in full, or may be a part of a longer one
  bool extraCalls = false;    ///< not only the pattern's calls: evaluation, a checkpoint, a change of the pattern
  std::uint64_t pattern = 0;  ///< counts the patterns: another number, and the times are of something else
};

struct PeriodOptions {
  PatternOptions pattern;
  /// A period younger than this is provisional: a first iteration's inner loop may repeat many times.
  Nanoseconds settleTime = 2s;
};

/// Feed it every call in the order of the call log; it gives back the iterations that this call completes.
/// Every communicator's calls have a pattern of their own (their order is the same in every run, that of threads is
/// not); the iteration is that of the communicator whose anchor recurs least often. A communicator that joins after the
/// period is established (evaluation) does not change it. Work a call is amortised constant. Used by one thread.
class PeriodFinder {
 public:
  explicit PeriodFinder(const PeriodOptions& options = {}) : options_(options) {}

  std::vector<IterationSample> add(const CallRecord& record);
  /// A change of ours alters the calls: find the period anew, silently; iterations stay known where the anchor allows
  /// it.
  void rebase();
  /// Calls were lost: the match starts over.
  void overrun(std::uint64_t lost);
  /// Calls an iteration, over all communicators; 0 while unknown.
  std::size_t period() const { return period_; }
  std::uint64_t lostCalls() const { return lost_; }

 private:
  struct Track {
    PatternTracker tracker;
    std::uint64_t firstBoundary = 0;  // boundaries of the chosen period when this communicator first called
    Nanoseconds lastCall{0};
  };
  struct Share {
    BusyTime busy;
    std::uint64_t calls = 0;
  };
  static constexpr std::size_t trackedCommunicators = 256;

  void choose(Nanoseconds now);
  void take(CommunicatorId communicator, Nanoseconds now);
  bool isProvisional(const Track& chosen, Nanoseconds now) const;
  void count(const CallRecord& record);
  void open(Nanoseconds now);
  IterationSample close(const PatternTracker::Boundary& boundary, Nanoseconds now);

  const PeriodOptions options_;
  std::map<CommunicatorId, Track> tracks_;
  std::optional<CommunicatorId> chosen_;
  Nanoseconds chosenSince_{0}, considered_{0};
  int chosenGeneration_ = 0;
  std::uint64_t boundaries_ = 0;  // of the chosen period
  std::uint64_t patterns_ = 0, index_ = 0, lost_ = 0;
  std::size_t period_ = 0;

  bool open_ = false;  // an iteration is in progress and none of its calls is missing
  Nanoseconds start_{0};
  BusyTime busy_;
  std::map<CommunicatorId, Share> shares_;
};

}  // namespace falcon::instrument
