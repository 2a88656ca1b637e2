// Who holds up whom in a job that does not go on: decided from what the ranks' logs show, without the ranks' help.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "instrument/rank_snapshot.h"

namespace falcon::diagnose {

/// A member of a communicator.
struct MemberName {
  Rank jobRank = -1;  ///< -1: not known, or several ranks share the process
  Rank rank = -1;     ///< in the communicator
  std::string text;   ///< "rank 3"
};

/// Something that keeps ranks waiting.
struct Finding {
  enum class Kind {
    notEntered,  ///< a collective, or the making of a communicator, that some wait in and others have not entered
    noPartner,   ///< a message whose other end has not been entered
    mismatch,    ///< members called different things
    stuck,       ///< all have entered it, and it does not end
    failed,      ///< it has ended with an error
    dead         ///< a member's process is gone
  };
  Kind kind = Kind::notEntered;
  CommunicatorId communicator = 0;
  CallRecord call;  ///< what is waited in; for a mismatch, what most members called
  /// Instead of a call: `communicator` is its key then.
  std::optional<instrument::MakingView> making;
  std::vector<MemberName> culprits;  ///< who has not entered it, called something else, or is stopped or dead
  std::vector<MemberName> waiting;   ///< who waits in it
  Nanoseconds longest{0};            ///< how long, the first of them
  /// False: the culprits wait in something else themselves, which is the cause.
  bool cause = true;
  std::string text;  ///< a sentence for people
};
const char* nameOf(Finding::Kind kind);

struct RankWhere {
  Rank jobRank = -1;
  std::int64_t pid = 0;
  std::string host;
  instrument::ProcessState process = instrument::ProcessState::alive;
  bool held = false;                 ///< by Falcon's own trap, for a validation
  std::vector<CallRecord> inFlight;  ///< oldest first
  std::vector<instrument::MakingView> makings;
  std::vector<instrument::OpenRange> ranges;  ///< the application's, by thread, the outermost first
  Nanoseconds now{0};                         ///< the moment, on the clock of all of these
  std::string text;
};

struct CommunicatorProgress {
  CommunicatorId id = 0;
  std::string name;  ///< "data parallel 0: ranks 0, 2"
  int size = 0;
  struct At {
    std::uint64_t collectives = 0;  ///< entered so far
    std::vector<MemberName> members;
  };
  std::vector<At> at;               ///< rising
  std::vector<MemberName> unknown;  ///< without a log here: another host, or Falcon is off there
};

struct HangFindings {
  std::vector<Finding> findings;  ///< causes first, the longest waits first
  std::vector<RankWhere> ranks;   ///< as given
  std::vector<CommunicatorProgress> communicators;
  bool circle = false;  ///< the findings have no cause outside: ranks wait for each other
  bool over = false;    ///< no process is left: what is told was so when they went
  bool hang() const { return !findings.empty(); }
};

/// A call that is in flight for less than `patience` is not waited in.
HangFindings analyseHang(std::span<const instrument::RankSnapshot> ranks, Nanoseconds patience);

}  // namespace falcon::diagnose
