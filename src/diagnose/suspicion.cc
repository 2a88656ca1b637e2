#include "diagnose/suspicion.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/format.h"
#include "base/rank_list.h"
#include "diagnose/account.h"
#include "diagnose/passive_evidence.h"
#include "diagnose/reach.h"
#include "instrument/communicator_names.h"

namespace falcon::diagnose {
namespace {

using instrument::Blame;
using instrument::CommunicatorMembers;
using ChainEnd = instrument::DelaySource;

const std::vector<Rank>& membersOf(CommunicatorId id, std::span<const CommunicatorMembers> communicators) {
  static const std::vector<Rank> nobody;
  for (const CommunicatorMembers& each : communicators)
    if (each.communicator == id) return each.members;
  return nobody;
}

/// Where the chain of waiting leads.
class Chain {
 public:
  /// Ranks that have the whole delay, and the one that is at all of two or more places, explain places.
  Chain(const Blame& blame, std::span<const CommunicatorMembers> communicators, std::vector<Candidate>& candidates,
        const SuspicionThresholds& thresholds)
      : thresholds_(thresholds) {
    for (const ChainEnd& end : blame.sources) {
      const auto& members = membersOf(end.communicator, communicators);
      if (end.kind == ChainEnd::Kind::rank)
        places_.push_back({end, {.quantity = Quantity::ownTime, .rank = end.rank}, {end.rank}});
      else if (end.kind == ChainEnd::Kind::link)
        places_.push_back({end,
                           {.quantity = Quantity::blockedTime, .link = end.link, .ranks = members},
                           {end.link.from, end.link.to}});
      else if (end.kind == ChainEnd::Kind::group)
        places_.push_back({end, {.quantity = Quantity::groupTime, .ranks = members}, members});
    }
    const auto hasHalf = [&](const Place& place) { return isOfSeveral(place) && place.end.share >= accused(); };
    leavesMuch_ = blame.unexplainedShare >= tested() && std::none_of(places_.begin(), places_.end(), hasHalf);
    const std::optional<Rank> common = commonRank();
    for (Candidate& candidate : candidates) {
      if (candidate.kind != CandidateKind::rank) continue;
      candidate.hasWholeDelay |= common == candidate.rank;
      std::erase_if(places_, [&](const Place& place) { return std::isinf(reachOf(candidate, place.seen).most); });
    }
    for (const Place& place : places_) {
      if (isOfSeveral(place) && place.end.share >= tested())
        near_.insert(place.seen.ranks.begin(), place.seen.ranks.end());
      if (place.end.share < accused()) continue;
      accused_.insert(place.end.rank);
      if (isOfSeveral(place)) accused_.insert(place.seen.ranks.begin(), place.seen.ranks.end());
    }
  }

  /// Does anybody wait for it?
  bool leadsTo(const Candidate& candidate) const {
    if (accused_.empty()) return true;
    double share = 0;
    for (const Place& place : places_) {
      if (candidate.kind == CandidateKind::rank ? place.end.rank == candidate.rank : isElsewhere(place, candidate))
        return true;
      if (isOfSeveral(place) && place.seen.ranks == candidate.ranks) share += place.end.share;
    }
    return candidate.kind == CandidateKind::rank ? near_.contains(candidate.rank) : share >= tested();
  }

  /// To be tested, whatever else was seen.
  void addTo(Suspicion& suspicion) const {
    for (const auto& [end, seen, ends] : places_) {
      const auto sameRank = [&, rank = end.rank](const RankSuspect& each) { return each.rank == rank; };
      const auto sameGroup = [&, id = end.communicator](const GroupSuspect& each) { return each.communicator == id; };
      auto& [ranks, groups, reason] = suspicion;
      if (end.kind == ChainEnd::Kind::rank) {
        if (end.share >= accused() && std::none_of(ranks.begin(), ranks.end(), sameRank))
          ranks.push_back({end.rank, end.growth});
      } else if (end.share >= tested() && std::none_of(groups.begin(), groups.end(), sameGroup)) {
        groups.push_back({end.communicator, end.growth, end.link});
      }
    }
  }

  bool leavesMuch() const { return leavesMuch_; }

 private:
  struct Place {
    ChainEnd end;
    Observation seen;  ///< what it would be seen in
    std::vector<Rank> ends;
  };
  static bool isOfSeveral(const Place& place) { return place.end.kind != ChainEnd::Kind::rank; }
  double accused() const { return thresholds_.accusedPart; }
  double tested() const { return thresholds_.testedPart; }

  /// It lies there, and at nobody who is accused.
  bool isElsewhere(const Place& place, const Candidate& candidate) const {
    return isOfSeveral(place) && place.seen.ranks == candidate.ranks &&
           std::none_of(place.ends.begin(), place.ends.end(), [&](Rank end) { return accused_.contains(end); });
  }

  std::optional<Rank> commonRank() const {
    std::vector<const Place*> all;
    for (const Place& place : places_)
      if (isOfSeveral(place) && place.end.share >= tested()) all.push_back(&place);
    if (all.size() < 2) return std::nullopt;
    std::vector<Rank> common = all.front()->ends;
    for (const Place* place : all) std::erase_if(common, [&](Rank rank) { return !contains(place->ends, rank); });
    return common.size() == 1 ? std::optional(common.front()) : std::nullopt;
  }

  const SuspicionThresholds& thresholds_;
  std::vector<Place> places_;
  bool leavesMuch_ = false;
  std::set<Rank> accused_;  ///< of half of the delay; members of accused groups
  std::set<Rank> near_;     ///< members of groups that have a part worth a test
};

/// Nobody is named before a test, so that there is no number that is too many.
Thresholds forSuspects() {
  Thresholds thresholds;
  thresholds.mostExplanations = 64;
  thresholds.mostForPairs = 16;  // a rank, and a link beside those at its end
  return thresholds;
}

void add(const Explanation& explanation, const PassiveEvidence& evidence, bool waitsOnly, Suspicion& suspicion) {
  const Candidate& candidate = explanation.candidate;
  if (candidate.kind == CandidateKind::rank)
    return suspicion.ranks.push_back({candidate.rank, std::exp(explanation.theta)});
  for (const Observation& group : evidence.observations) {
    if (group.quantity != Quantity::groupTime || group.ranks != candidate.ranks) continue;
    const auto same = [&](const GroupSuspect& each) { return each.communicator == group.communicator; };
    if (std::any_of(suspicion.groups.begin(), suspicion.groups.end(), same)) continue;
    return suspicion.groups.push_back({group.communicator, std::exp(group.value), candidate.link, waitsOnly});
  }
}

/// What is known of the network of the link that holds up the group.
std::string networkOf(const GroupSuspect& suspect) {
  const std::string network = sentenceOf(suspect.network);
  if (network.empty()) return {};
  return fmt::format(" ({} -> {} most of it: {})", suspect.slowest.from, suspect.slowest.to, network);
}

}  // namespace

Suspicion suspect(const SeenInProfile& seen, const SuspicionThresholds& thresholds) {
  const PassiveEvidence evidence = passiveEvidenceOf(seen.ranks, seen.communicators, thresholds);
  std::vector<Candidate> candidates = evidence.candidates;
  std::optional<Chain> chain;
  if (seen.chain) chain.emplace(*seen.chain, seen.communicators, candidates, thresholds);

  Suspicion result;
  const Account account = accountOf(evidence.observations, candidates, forSuspects());
  for (const Explanation& each : account.explanations)
    if (each.candidate.accusable && (!chain || chain->leadsTo(each.candidate))) add(each, evidence, false, result);
  if (chain) chain->addTo(result);
  for (const Explanation& each : account.explanations)
    if (!each.candidate.accusable && chain && chain->leavesMuch()) add(each, evidence, true, result);

  const auto isKnown = [&](const Observation& what) {
    return std::any_of(seen.known.begin(), seen.known.end(),
                       [&](const Candidate& each) { return !reachOf(each, what).isNone(); });
  };
  std::erase_if(result.ranks,
                [&](const RankSuspect& each) { return isKnown({.quantity = Quantity::ownTime, .rank = each.rank}); });
  std::erase_if(result.groups, [&](const GroupSuspect& each) {
    return isKnown({.quantity = Quantity::groupTime, .ranks = membersOf(each.communicator, seen.communicators)});
  });
  const auto worstFirst = [](const auto& a, const auto& b) { return a.growth > b.growth; };
  std::stable_sort(result.ranks.begin(), result.ranks.end(), worstFirst);
  std::stable_sort(result.groups.begin(), result.groups.end(), worstFirst);
  for (GroupSuspect& each : result.groups)
    if (const auto found = seen.network.find(each.slowest); found != seen.network.end()) each.network = found->second;
  const auto isOwnTimeKnown = [](const auto& each) { return each.healthy.own > 0 && each.now.own > 0; };
  if (!result.empty())
    result.reason = reasonFor(result, seen.communicators);
  else if (std::any_of(seen.ranks.begin(), seen.ranks.end(), isOwnTimeKnown))
    result.reason =
        fmt::format("computing grew by {:.2f}x in the middle of {} ranks", evidence.usualGrowth, seen.ranks.size());
  else
    result.reason = fmt::format("the own time of none of {} ranks is known", seen.ranks.size());
  return result;
}

std::string reasonFor(const Suspicion& suspicion, std::span<const CommunicatorMembers> communicators) {
  std::string text;
  const auto say = [&](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  const auto nameOf = [&](CommunicatorId id) {
    for (const CommunicatorMembers& each : communicators)
      if (each.communicator == id) return each.name.empty() ? instrument::ranksText(each.members) : each.name;
    return instrument::CommunicatorNames().membersOf(id);
  };
  for (const RankSuspect& each : suspicion.ranks)
    say(fmt::format("rank {} computes {:.2f}x longer than usual", each.rank, each.growth));
  for (const GroupSuspect& each : suspicion.groups)
    say(each.waitsOnly ? fmt::format("all of {} wait {:.1f} times longer there, and who for is not told",
                                     nameOf(each.communicator), each.growth)
                       : fmt::format("communication among {} takes {:.2f}x its healthy time", nameOf(each.communicator),
                                     each.growth) +
                             networkOf(each));
  return text;
}

}  // namespace falcon::diagnose
