// The iteration's period, from the calls alone: online, for one process.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <vector>

#include "base/call.h"
#include "instrument/acf_period.h"
#include "instrument/busy_time.h"
#include "instrument/pattern_tracker.h"
#include "instrument/size_variety.h"

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
  /// Bytes of the communicators whose messages differ in size from iteration to iteration: what the iteration's time
  /// follows. 0: the sizes are the same in all.
  double work = 0;
};

enum class PeriodMethod { falcon, acf };

struct PeriodOptions {
  PeriodMethod method = PeriodMethod::falcon;
  PatternOptions pattern;
  /// A period younger than this is provisional: a first iteration's inner loop may repeat many times.
  Nanoseconds settleTime = 2s;
};

/// Feed it every call in the order of the call log; it gives back the iterations that this call completes.
/// Every communicator's calls have a pattern of their own (their order is the same in every run, that of threads is
/// not), and so may all calls together; the iteration is that of the sequence whose anchor recurs least often, unless
/// that is an occasional step (occasional_step.h). A communicator that joins after the period is established
/// (evaluation) does not change it. Where nothing repeats for long, but would if the sizes did not count (sequences of
/// other lengths in every iteration), they no longer count. Communicators may come and go: of those without calls the
/// longest silent is forgotten. Memory is bounded, work a call amortised constant. Used by one thread.
class PeriodFinder {
 public:
  explicit PeriodFinder(const PeriodOptions& options = {}) : options_(options) {}

  std::vector<IterationSample> add(const CallRecord& record);
  /// A change of ours alters the calls: find the period anew, silently; iterations stay known where the anchor allows
  /// it.
  void rebase();
  /// Calls were lost: the match starts over.
  void overrun(std::uint64_t lost);
  /// There is a pattern now. False before the first is found, and after it was lost.
  bool following() const;
  /// Calls an iteration, over all communicators; 0 while unknown. Exact where the calls' order over all communicators
  /// repeats; where threads interleave it is the mean of the last iterations, rounded.
  std::size_t period() const;
  std::uint64_t lostCalls() const { return lost_; }

 private:
  struct Track {
    PatternTracker tracker;
    std::uint64_t firstBoundary = 0;  // boundaries of the chosen period when this communicator first called
    Nanoseconds lastCall{0};
    // Boundaries of the chosen period at this one's first and last, and how many intervals of this one lie between.
    std::uint64_t cutFirst = 0, cutLast = 0, intervals = 0;
    // Least bytes of an iteration of the chosen period: since this one's last boundary, and before it.
    double least = -1, leastBefore = 0;
  };
  struct Share {
    BusyTime busy;
    std::uint64_t calls = 0;
    double bytes = 0;
  };
  /// What a communicator's messages carried in the last iteration, and whether that has ever been otherwise.
  struct Carried {
    double bytes = 0;
    bool varies = false;
  };
  static constexpr std::size_t trackedCommunicators = 256;
  static constexpr std::size_t rememberedCalls = 1 << 19;  // over all communicators: 12 MiB
  static constexpr int silentIterations = 8;
  static constexpr std::size_t averagedIterations = 64;

  /// All communicators' calls as one sequence, where there are several. Where one thread makes them, it has a pattern,
  /// and that may be longer than any communicator's.
  static constexpr CommunicatorId allTogether = ~CommunicatorId{0};

  std::optional<PatternTracker::Boundary> feed(CommunicatorId id, Track& track, const TrackedCall& call);
  std::vector<IterationSample> addByCorrelation(const CallRecord& record);
  Track* trackOf(CommunicatorId id, Nanoseconds now);
  bool isOccasional(const Track& candidate, Nanoseconds usual) const;
  bool isOneOrderOfSeveral(const Track& together) const;

  void noteSilence(Nanoseconds now);
  void noteSizes(const CallRecord& record);
  double workOf();
  void choose(Nanoseconds now);
  bool isBetterCut(const Track& candidate, const Track& chosen) const;
  std::optional<Nanoseconds> quietBehind(const PatternTracker& tracker) const;
  void cutBy(CommunicatorId communicator);
  void changed();
  void take(CommunicatorId communicator, Nanoseconds now);
  bool isProvisional(const Track& chosen, Nanoseconds now) const;
  bool hasOtherCalls(std::size_t calls);
  void count(const CallRecord& record);
  void open(Nanoseconds now);
  IterationSample close(bool matched, Nanoseconds now);

  const PeriodOptions options_;
  bool sizesCount_ = true;
  SizeVariety variety_;
  std::map<CommunicatorId, Carried> carried_;
  std::map<CommunicatorId, Track> tracks_;
  std::optional<CommunicatorId> chosen_;
  Nanoseconds chosenSince_{0}, considered_{0};
  Nanoseconds lastCall_{0}, resumed_{0};  // of the process: its newest call, and the first one after a silence
  int chosenGeneration_ = 0;
  std::uint64_t boundaries_ = 0;  // of the chosen period
  std::uint64_t patterns_ = 0, index_ = 0, lost_ = 0;
  std::deque<std::size_t> periods_;  // calls of the last iterations without extra ones
  std::uint32_t calls_ = 0;
  int changes_ = 0;  // of any sequence's pattern
  AcfPeriod correlation_;

  bool open_ = false;  // an iteration is in progress and none of its calls is missing
  Nanoseconds start_{0};
  BusyTime busy_;
  std::map<CommunicatorId, Share> shares_;
  double bytes_ = 0, lastBytes_ = 0;  // that the calls of this iteration carry, and those of the last one
  std::size_t collectives_ = 0, lastShares_ = 0;
  bool hasCollective_ = false;  // the last one
  std::size_t otherCalls_ = 0;  // of the last iteration that had not as many as those before
  int others_ = 0;              // the same in a row
  std::size_t lastCalls_ = 0;
  std::size_t lastMix_ = 0;     // hash of how many calls the last iteration had on each communicator
  std::size_t callsAlike_ = 0;  // of the iterations in a row that had the same
  int unsteady_ = 0;            // rises by four when the number of calls changes, falls by one when it does not
  int silent_ = 0;              // iterations until a change counts again
  int swaps_ = 0;               // between sequences that recur equally often
  int cuts_ = 0;                // of the chosen period since its pattern changed
  // Of the iterations since the period was chosen: those without extra calls, and those with.
  Nanoseconds plainTime_{0}, extraTime_{0};
};

}  // namespace falcon::instrument
