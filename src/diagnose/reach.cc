#include "diagnose/reach.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/rank_list.h"
#include "diagnose/thresholds.h"

namespace falcon::diagnose {
namespace {

constexpr double anything = std::numeric_limits<double>::infinity();
const ReachThresholds ofReach;

Reach excused(double most, double slack = 0) {
  return {0, most, slack, false};
}

/// Do the link's bytes go over what the candidate is?
bool carries(const Candidate& candidate, const Observation& observation) {
  const Link& link = observation.link;
  switch (candidate.kind) {
    case CandidateKind::rank:
    case CandidateKind::group:
      return false;
    case CandidateKind::link:
      return candidate.link == link;
    case CandidateKind::interfaceOut:
      return observation.overNetwork && contains(candidate.ranks, link.from) && !contains(candidate.ranks, link.to);
    case CandidateKind::interfaceIn:
      return observation.overNetwork && contains(candidate.ranks, link.to) && !contains(candidate.ranks, link.from);
  }
  return false;
}

Reach reachOfRank(const Candidate& candidate, const Observation& observation) {
  const Rank rank = candidate.rank;
  const bool ofLink = isOfLinks(observation.quantity), ofGroup = observation.quantity == Quantity::groupTime;
  const bool touches = ofLink    ? observation.link.from == rank || observation.link.to == rank
                       : ofGroup ? contains(observation.ranks, rank)
                                 : observation.rank == rank;
  if (!touches) return {};
  if (ofGroup || observation.quantity == Quantity::blockedTime) return excused(candidate.hasWholeDelay ? anything : 1);
  if (ofLink) return excused(1, ofReach.standingStill);
  return observation.quantity == Quantity::ownTime ? Reach{ofReach.leastOfOwnTime, 1, 0} : Reach{0, 1, 0};
}

/// Where the delay of a link or a group shows: among all who meet where its own ranks meet too.
bool surrounds(const Observation& observation, const Candidate& candidate) {
  if (observation.ranks.size() < candidate.ranks.size()) return false;
  const auto isMember = [&](Rank rank) { return contains(observation.ranks, rank); };
  if (candidate.kind == CandidateKind::link) return isMember(candidate.link.from) && isMember(candidate.link.to);
  return std::all_of(candidate.ranks.begin(), candidate.ranks.end(), isMember);
}

}  // namespace

Reach reachOf(const Candidate& candidate, const Observation& observation) {
  if (candidate.kind == CandidateKind::rank) return reachOfRank(candidate, observation);
  const bool isLink = candidate.kind == CandidateKind::link, isGroup = candidate.kind == CandidateKind::group;
  if (observation.quantity == Quantity::groupTime) {
    if (isGroup && candidate.ranks == observation.ranks) return {1, 1, 0};
    return (isLink || isGroup) && surrounds(observation, candidate) ? excused(anything) : Reach{};
  }
  if (observation.quantity == Quantity::blockedTime) {
    if (!isLink || !surrounds(observation, candidate)) return {};
    const bool isOwn = candidate.link == observation.link && candidate.ranks == observation.ranks;
    return isOwn ? Reach{1, 1, 0} : excused(anything);
  }
  if (!isOfLinks(observation.quantity) || !carries(candidate, observation)) return {};
  return observation.quantity == Quantity::linkTest ? Reach{1, 1, 0} : Reach{ofReach.leastUnderWay, anything, 0};
}

}  // namespace falcon::diagnose
