#include "control/validation_tests.h"

#include <algorithm>

namespace falcon::control {

std::vector<validate::TestedGroup> testedGroups(const JobView& job, const instrument::Suspicion& suspects) {
  std::vector<validate::TestedGroup> groups;
  for (const instrument::GroupSuspect& suspect : suspects.groups) {
    const auto found = job.communicators().find(suspect.communicator);
    if (found == job.communicators().end() || !found->second.hostEngine) continue;
    groups.push_back({suspect.communicator, found->second.jobRanks, found->second.ring});
  }
  return groups;
}

std::map<Rank, validate::RankPlace> placesOf(const JobView& job) {
  std::map<Rank, validate::RankPlace> places;
  for (const auto& [process, member] : job.members()) {
    validate::RankPlace& place = places[member.identity.jobRank];
    place.address = member.identity.address;
    place.host = member.identity.host;
  }
  for (const auto& [id, communicator] : job.communicators())
    for (std::size_t i = 0; i < communicator.jobRanks.size() && i < communicator.nodes.size(); ++i)
      places[communicator.jobRanks[i]].node = communicator.nodes[i];
  return places;
}

std::set<ProcessId> computeTargets(const JobView& job, const instrument::Suspicion& suspects) {
  std::set<Rank> suspected;
  for (const instrument::ComputeSuspect& each : suspects.ranks) suspected.insert(each.rank);
  std::set<Rank> ranks = suspected;
  const std::size_t all = job.members().size();
  for (const auto& [id, communicator] : job.communicators()) {
    const bool suspicious = std::any_of(suspects.groups.begin(), suspects.groups.end(),
                                        [&, at = id](const auto& group) { return group.communicator == at; });
    const bool near = communicator.jobRanks.size() < all &&
                      std::any_of(suspected.begin(), suspected.end(), [&, &group = communicator](Rank rank) {
                        return communicatorRank(group, rank).has_value();
                      });
    if (suspicious || near) ranks.insert(communicator.jobRanks.begin(), communicator.jobRanks.end());
  }
  std::set<ProcessId> targets;
  for (const Rank rank : ranks)
    if (const auto process = job.processOf(rank)) targets.insert(*process);
  // A comparison needs peers: with fewer than three the whole job is tested.
  return targets.size() < 3 ? job.allProcesses() : targets;
}

validate::VerdictInput verdictInput(const JobView& job, const ValidationInput& input, const ValidationTests& tests) {
  validate::VerdictInput verdict;
  for (const auto& [process, member] : job.members()) {
    validate::RankFigures figures;
    figures.rank = member.identity.jobRank;
    figures.ownTimeGrowth = ownTimeGrowth(member, input.window).value_or(validate::unknown);
    if (const auto score = tests.compute.find(process); score != tests.compute.end() && score->second.problem.empty()) {
      figures.score = score->second.gigaflopsPerSecond;
      if (score->second.throttledSeconds >= 0)
        figures.throttledShare = score->second.throttledSeconds / computeSpanSeconds;
    }
    verdict.ranks.push_back(figures);
  }
  verdict.links = tests.links;
  verdict.knownLinkRates = input.knownLinkRates;
  return verdict;
}

}  // namespace falcon::control
