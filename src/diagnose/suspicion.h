// Who may be to blame for a fail-slow, before any test: whom to look at, in words and as what a validation tests. Pure.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "diagnose/candidate.h"
#include "diagnose/net_condition.h"
#include "diagnose/thresholds.h"
#include "instrument/blame.h"
#include "instrument/profile.h"

namespace falcon::diagnose {

struct RankSuspect {
  Rank rank = -1;     ///< of the job
  double growth = 1;  ///< of its own time, against the usual growth
};

/// A communicator that takes longer for no fault of its members' own time.
struct GroupSuspect {
  CommunicatorId communicator = 0;
  double growth = 1;
  Link slowest{};          ///< job ranks; the link that has most of the delay; -1: it is not known
  bool waitsOnly = false;  ///< what moves there moves as fast as ever
  NetCondition network{};  ///< that the slowest link goes over; none: no plugin tells
};

struct Suspicion {
  std::vector<RankSuspect> ranks;    ///< worst first
  std::vector<GroupSuspect> groups;  ///< worst first
  std::string reason;                ///< one sentence with the numbers, also when nobody is suspected
  bool empty() const { return ranks.empty() && groups.empty(); }
};

struct SeenInProfile {
  std::vector<instrument::RankComparison> ranks;
  std::vector<instrument::CommunicatorMembers> communicators;
  std::optional<instrument::Blame> chain{};  ///< of waiting, where it can be told
  std::vector<Candidate> known{};            ///< culprits; what they may explain is not suspected
  std::map<Link, NetCondition> network{};    ///< what net plugins say of links, job ranks
};

/// One account of passive evidence (passive_evidence.h, reach.h), and where the chain of waiting leads. The chain is no
/// evidence, it tells where to look:
/// - whom it accuses of half of the delay is tested, too, and a group or link with three tenths, unless a rank with
///   the whole delay explains it. So does the one rank that is at all links and groups that it leads to;
/// - where it accuses somebody of half, nobody is suspected for whom nobody waits: beside other programs some rank
///   always looks slow. Members of a group that it leads to stay; a group whose little part lies at an accused rank
///   does not;
/// - where it leaves much of the delay to nobody, groups in which all wait are tested, though nothing there seems to
/// move
///   slowly: behind a slow rank a slow link of another group hardly shows. Not where a group or a link has half: the
///   rest is of a busy machine more often than of a second slow link, which is looked for once the first is known.
Suspicion suspect(const SeenInProfile& seen, const SuspicionThresholds& thresholds = {});

/// The sentence about those who are suspected; empty: nobody is.
std::string reasonFor(const Suspicion& suspicion, std::span<const instrument::CommunicatorMembers> communicators);

}  // namespace falcon::diagnose
