#include "diagnose/reach.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace falcon::diagnose {
namespace {

constexpr double anything = std::numeric_limits<double>::infinity();
// A rank that stands still now and then makes links look slower than by its own slowdown.
const double standingStill = std::log(2.0);
// The time under way has the waiting of others in it, and lacks what was hidden behind computing.
constexpr double leastUnderWay = 0.5;
// Own time is computing, and data loading, and whatever else the rank does outside of the library.
constexpr double leastOfOwnTime = 1.0 / 3;

bool uses(const Candidate& candidate, Rank rank) {
  return std::find(candidate.ranks.begin(), candidate.ranks.end(), rank) != candidate.ranks.end();
}

/// Do the link's bytes go over what the candidate is?
bool carries(const Candidate& candidate, const Observation& observation) {
  const Link& link = observation.link;
  switch (candidate.kind) {
    case CandidateKind::rank:
      return false;
    case CandidateKind::link:
      return candidate.link == link;
    case CandidateKind::interfaceOut:
      return observation.overNetwork && uses(candidate, link.from) && !uses(candidate, link.to);
    case CandidateKind::interfaceIn:
      return observation.overNetwork && uses(candidate, link.to) && !uses(candidate, link.from);
  }
  return false;
}

Reach reachOfRank(Rank rank, const Observation& observation) {
  if (isOfLinks(observation.quantity))
    return observation.link.from == rank || observation.link.to == rank ? Reach{0, 1, standingStill, false} : Reach{};
  if (observation.rank != rank) return {};
  return observation.quantity == Quantity::ownTime ? Reach{leastOfOwnTime, 1, 0} : Reach{0, 1, 0};
}

}  // namespace

Reach reachOf(const Candidate& candidate, const Observation& observation) {
  if (candidate.kind == CandidateKind::rank) return reachOfRank(candidate.rank, observation);
  if (!isOfLinks(observation.quantity) || !carries(candidate, observation)) return {};
  return observation.quantity == Quantity::linkTest ? Reach{1, 1, 0} : Reach{leastUnderWay, anything, 0};
}

}  // namespace falcon::diagnose
