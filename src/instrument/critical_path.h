// What the job waited for: the chain of waiting, followed from the end of an iteration back to its start.
#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <unordered_map>
#include <vector>

#include "instrument/profile.h"
#include "instrument/timeline.h"

namespace falcon::instrument {

/// A stretch of time in which the whole job depended on one thing.
struct PathPiece {
  enum class Kind : std::uint8_t {
    own,      ///< a rank was outside of the library
    transfer  ///< all that a call needs had come, and it was not over yet
  };
  Kind kind = Kind::own;
  Rank rank = -1;                   ///< job rank whose time it is
  Rank from = -1;                   ///< of a message: the job rank that sent it
  CommunicatorId communicator = 0;  ///< of a transfer
  std::uint64_t context = 0;        ///< the same for the same stretch of code in every iteration
  Nanoseconds start{0}, end{0};
};

/// Ranks whose calls repeat in another pattern here than there, or not at all: the calls of several threads overtake
/// each other now and then, above all where one is held up. Positions in the pattern tell nothing of these.
std::set<Rank> irregularRanks(const JobTimeline& one, const JobTimeline& other);

/// The calls of a job, with what each had to wait for. Reading only; built once, then used by one thread.
class WaitGraph {
 public:
  /// Calls of communicators that are not in `members` count as waiting for nobody. Both must outlive the graph.
  /// The context of a piece is its place in the rank's repeating pattern; of `irregular` ranks, and where there is no
  /// pattern, which call it leads to, and which was before.
  WaitGraph(const JobTimeline& timeline, std::span<const CommunicatorMembers> members,
            const std::set<Rank>& irregular = {});

  /// From the end of the timeline back to its start; the pieces touch each other, the newest comes first. Where a call
  /// began before its last partner came, the path goes on at that partner: it was waited for. Work: linear in the
  /// calls.
  std::vector<PathPiece> criticalPath() const;

  /// Every stretch of every rank between start and end, whether the job depended on it or not: what is usual.
  std::vector<PathPiece> allPieces() const;

 private:
  struct Participant {
    std::size_t rank, call;  // indices into the timeline
  };
  struct Row {
    std::vector<std::uint64_t> contexts;  // by call
    std::vector<std::size_t> matches;     // by call: number of the match
    std::vector<std::size_t> latest;      // by call: which of the calls entered until then leaves last
  };
  struct Readiness {
    Nanoseconds at;
    Participant last;
  };

  const TimelineCall& callOf(Participant participant) const;
  Readiness readiness(Participant participant) const;
  bool waitsFor(Participant waiting, Participant other) const;
  Participant blocking(Participant participant) const;
  Rank senderOf(Participant participant) const;
  PathPiece transferPiece(Participant participant, Nanoseconds start, Nanoseconds end) const;

  const JobTimeline& timeline_;
  std::unordered_map<CommunicatorId, std::vector<Rank>> members_;
  std::vector<Row> rows_;                          // by rank of the timeline
  std::vector<std::vector<Participant>> matches_;  // the calls that belong together, by match; the last to enter first
};

}  // namespace falcon::instrument
