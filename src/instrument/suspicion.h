// Who may be to blame for a fail-slow, before any test.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "instrument/profile.h"

namespace falcon::instrument {

/// A rank that computes more slowly than its baseline, beyond what all ranks do.
struct ComputeSuspect {
  Rank rank = -1;     ///< of the job
  double growth = 1;  ///< of its own time, against the usual growth
  /// It is slower by as much as the iterations became longer: nothing is left for what it touches.
  bool explainsAll = false;
};

/// A communicator that is slower than its own baseline, beyond what all ranks' computing is, for no fault of its
/// members.
struct GroupSuspect {
  CommunicatorId communicator = 0;
  double growth = 1;
  Link slowest;            ///< job ranks; the connection that has most of the delay; -1 without per-channel timing
  bool waitsOnly = false;  ///< what moves there moves as fast as ever
};

struct Suspicion {
  std::vector<ComputeSuspect> ranks;  ///< worst first
  std::vector<GroupSuspect> groups;   ///< worst first
  std::string reason;                 ///< one sentence with the numbers, also when nobody is suspected
  double usualGrowth = 1;             ///< of own time, of the middle one of all ranks
  std::size_t compared = 0;           ///< ranks
  /// Groups in which all wait longer than they did, though what moves there moves as fast as ever: worst first. Not
  /// suspected for that alone: who receives what somebody else holds up waits, and nothing seems to move slowly.
  std::vector<GroupSuspect> waiting;
  bool empty() const { return ranks.empty() && groups.empty(); }
};

struct SuspicionRules {
  double computeGrowth = 1.2;   ///< own time against the median growth of all ranks
  double transferGrowth = 1.2;  ///< seconds a byte, or without timing a group's communication, against its baseline
  double leastShare = 0.05;     ///< of a healthy iteration: less growth than that cannot be the cause
  double leastPart = 0.1;       ///< of what iterations became longer by: likewise
  /// Of the same, a rank's own time: that of healthy ranks grows by chance beside a busy core (an eighth was seen).
  /// Less is looked for when the rest is explained.
  double leastPartOfRank = 0.2;
  double wholePart = 0.95;  ///< of what iterations became longer by: who is slower by that explains all of it
};

/// The sentence about those who are suspected now: not all that were at first need be.
std::string reasonFor(const Suspicion& suspicion, std::span<const CommunicatorMembers> communicators);

/// All ranks of a synchronous job are equally slow; what differs is who waits. So:
/// - a rank's own time is compared with its own baseline and with what all ranks' did (a busy neighbour of all is
/// nobody);
/// - a group's communication is what its least waiting member spends in it: the last one to come waits for nobody. With
///   per-channel timing the evidence is the time that bytes are in flight, on the connection that has most of the
///   delay: seconds a byte must have grown, and the group by a part of the delay, however little that is beside the
///   time that it takes in health. Bytes in flight alone accuse nobody: on shared cores they also count as in motion
///   while their receiver is not there. Without timing the group's own time must have grown;
/// - what touches a suspected rank is explained by it, unless it grew clearly more than that rank did;
/// - a rank that is slower by as much as the iterations became longer explains the groups that it is a member of, where
///   no connection between others is slower;
/// - a group that contains a smaller suspected group is explained by that one: where all meet, the delay of some shows.
///
/// @param ranks  every rank whose baseline is known; ranks that never left the library between calls have own = 0
/// Source: Falcon, arXiv 2410.12588, section 4.3; thresholds there are 1.1 (transfer) and 1.2 (compute) times the
/// median.
Suspicion suspect(std::span<const RankComparison> ranks, std::span<const CommunicatorMembers> communicators,
                  const SuspicionRules& rules = {});

}  // namespace falcon::instrument
