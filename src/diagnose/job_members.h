// The communicators of a job, put together from the logs of its ranks.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "diagnose/hang_analysis.h"
#include "instrument/communicator_names.h"
#include "instrument/rank_snapshot.h"

namespace falcon::diagnose {

struct Member {
  const instrument::RankSnapshot* snapshot = nullptr;  ///< null: no log of it here
  const instrument::CommunicatorView* view = nullptr;  ///< null: its log does not know the communicator
  MemberName name;
  std::vector<const CallRecord*> collectives, messages;  ///< in flight; collectives by number

  /// Its state is known, and it has not entered collective `number`.
  bool hasNotEntered(std::uint64_t number) const { return view && view->collectives <= number; }
  const CallRecord* inFlight(std::uint64_t collective) const;
  /// A finished collective, as far as the ring still has it.
  const CallRecord* finished(std::uint64_t collective) const;
  /// The finished ones, as far as the ring still has them, those in flight, and the one that failed.
  std::vector<const CallRecord*> collectivesUpTo(std::uint64_t number) const;
  /// The message in flight that is the other end of `call` of `other`; null where there is none.
  const CallRecord* partnerOf(const CallRecord& call, const Member& other) const;
  /// The call in flight is this member's, and not that of another rank of its process.
  bool isCaller(const CallRecord& call) const;
};

struct JobCommunicator {
  CommunicatorId id = 0;
  std::string name, title, among;  ///< as instrument::CommunicatorNames has them: nameOf, titleOf, membersOf
  bool live = false;               ///< of some member, or was when calls failed and the job ended
  std::vector<Member> members;
};

/// What they are called.
instrument::CommunicatorNames namesIn(std::span<const instrument::RankSnapshot> ranks);

/// The communicators that are in use by a rank that has not left, or in which a job failed that is over, in the order
/// of their ids.
std::vector<JobCommunicator> communicatorsOf(std::span<const instrument::RankSnapshot> ranks);

}  // namespace falcon::diagnose
