// Events, verdicts and plans: what Falcon says, as values. Exporters turn them into JSON lines; replay reads them back.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/types.h"

namespace falcon {

/// What a fail-slow is about.
enum class CulpritKind : std::uint8_t { none, rank, link, host };

/// Who is to blame. Ranks are the job's.
struct Culprit {
  CulpritKind kind = CulpritKind::none;
  Rank rank = -1;         ///< kind rank
  Link link;              ///< kind link
  bool bothWays = false;  ///< kind link: the opposite direction is slow too
  std::string host{};     ///< kind host: its name
  auto operator<=>(const Culprit&) const = default;
};

/// "rank 3", "link 0 -> 2", "link 0 <-> 2", "host worker-7", "none".
std::string nameOf(const Culprit& culprit);

/// One figure that a validation decided by, of a rank or of a link.
struct Observed {
  std::string what;      ///< "own time", "link test" ...
  Rank rank = -1;        ///< of a rank's figure
  Link link;             ///< of a link's
  double slower = 1;     ///< how many times slower than its peers; infinite: slower, and how much cannot be told
  double deviation = 0;  ///< standard deviation of its logarithm
};

/// The outcome of a validation. `confidence` 0 to 1; `certain` false means "not certain": nobody is named aloud.
struct Verdict {
  std::vector<Culprit> culprits;
  bool certain = false;
  double confidence = 0;
  std::string evidence;  ///< one sentence with the numbers
  /// Of each culprit alone; empty where it is `evidence`.
  std::map<Culprit, std::string> evidenceOf{};
  std::vector<Observed> observed{};
};

/// Micro-batches of every data-parallel replica, in replica order; what the framework asks for at an iteration's start.
struct MicroBatchPlan {
  std::uint64_t version = 0;
  std::uint64_t fromIteration = 0;
  std::vector<int> microBatches;
};

/// "From collective `fromCollective` on, communicator `communicator` uses this ring order" (re-route).
struct RingPlan {
  CommunicatorId communicator = 0;
  std::uint64_t fromCollective = 0;
  std::vector<Rank> order;   ///< ranks of the communicator
  std::vector<Rank> before;  ///< the order it replaces
};

/// Code that takes longer than in the healthy baseline, as the application names it (ncclFalconRangeBegin).
struct RangeGrowth {
  Rank rank = -1;
  std::string name;
  double beforeMilliseconds = 0, afterMilliseconds = 0;  ///< an iteration
};

/// Who may be to blame, before any test.
struct Suspect {
  std::vector<Rank> ranks;  ///< of the job; one: it computes slowly; more: communication among them is slow
  double growth = 1;        ///< against what it takes in health
};

enum class EventKind : std::uint8_t {
  jobStarted,
  periodKnown,
  baselineTaken,
  onset,
  worsening,
  easing,
  suspicion,
  trapClosed,
  trapOpened,
  trapTimedOut,
  verdict,
  inconclusive,
  mitigationAdvised,
  mitigationApplied,
  mitigationUndone,
  mitigationRefused,
  relief,
  switchedOff,
  jobEnded,
  patternChanged,
  suspended,
  resumed,
  minor,
  minorOver
};
inline constexpr int eventKindCount = static_cast<int>(EventKind::minorOver) + 1;

/// "onset", "trap-closed" ... the `kind` of the JSON line.
const char* nameOf(EventKind kind);

/// One thing worth knowing. `time` is the controller's steady clock, `wallTime` seconds since 1970.
struct Event {
  EventKind kind = EventKind::jobStarted;
  Nanoseconds time{0};
  double wallTime = 0;
  std::int64_t iteration = -1;
  double beforeMilliseconds = 0;  ///< iteration time before, where it applies
  double afterMilliseconds = 0;   ///< iteration time after, where it applies
  double confidence = 0;
  int severity = 0;            ///< 1 to 4, by how much longer iterations take; 0: does not apply
  double durationSeconds = 0;  ///< of a trap
  Culprit culprit;
  std::vector<Suspect> suspects;
  std::vector<RangeGrowth> ranges;
  std::vector<Observed> observed;  ///< of a verdict, or of a validation that named nobody
  std::string action;              ///< of a mitigation: "reroute", "split", "swap" or "restart"
  std::string text;                ///< one sentence for people
};

/// Where events go. Called by one thread, the controller's; implementations do not throw and do not block the job.
class EventSink {
 public:
  virtual ~EventSink() = default;
  virtual void add(const Event& event) = 0;
};

}  // namespace falcon
