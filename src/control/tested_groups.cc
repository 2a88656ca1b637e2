#include "control/tested_groups.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "control/decisions.h"
#include "control/peers.h"
#include "topology/binary_tree.h"

namespace falcon::control {
namespace {

using TreeOf = topology::TreeNode (*)(Rank rank, int size);
constexpr TreeOf trees[] = {&topology::firstTree, &topology::secondTree};

/// What per-channel timing saw of one communicator.
struct Carried {
  bool complete = false;           ///< of every member
  std::map<Link, double> seconds;  ///< in which bytes were moving, by ranks of the communicator
};

Carried carriedIn(const JobView& job, const CommunicatorFormed& communicator) {
  Carried carried{.complete = !communicator.jobRanks.empty(), .seconds = {}};
  for (std::size_t rank = 0; rank < communicator.jobRanks.size(); ++rank) {
    const auto process = job.processOf(communicator.jobRanks[rank]);
    const MemberView* member = process ? &job.members().at(*process) : nullptr;
    const TransferView* view = member ? &member->newestTransfers() : nullptr;
    if (!view || view->iterations == 0) {
      carried.complete = false;
      continue;
    }
    for (const TransferSum& sum : view->sums) {
      if (sum.id != communicator.id || sum.bytes == 0) continue;
      const auto self = static_cast<Rank>(rank);
      double& longest = carried.seconds[sum.sending ? Link{self, sum.peer} : Link{sum.peer, self}];
      longest = std::max(longest, sum.moving);
    }
  }
  return carried;
}

/// How many of the two trees the group's collectives use: those whose every pair was seen to carry something. Where all
/// pairs did, an exchange of everybody with everybody hides them, and to test that as a whole would take too long: the
/// slowest pairs tell.
int treesOf(const JobView& job, const CommunicatorFormed& communicator, const Carried& carried) {
  const auto size = static_cast<int>(communicator.jobRanks.size());
  if (size < 2) return 0;
  if (!carried.complete) {
    const bool collectives = std::any_of(job.members().begin(), job.members().end(), [&](const auto& each) {
      const auto traffic = each.second.traffic.find(communicator.id);
      return traffic != each.second.traffic.end() && traffic->second.collectives;
    });
    return collectives ? static_cast<int>(std::size(trees)) : 0;
  }
  std::set<Link> pairs;
  for (const auto& [link, seconds] : carried.seconds)
    pairs.insert({std::min(link.from, link.to), std::max(link.from, link.to)});
  if (pairs.size() == static_cast<std::size_t>(size) * static_cast<std::size_t>(size - 1) / 2) return 0;
  int used = 0;
  for (const TreeOf tree : trees) {
    for (Rank rank = 0; rank < size; ++rank) {
      const Rank parent = tree(rank, size).up;
      if (parent >= 0 && !pairs.contains({std::min(rank, parent), std::max(rank, parent)})) return used;
    }
    ++used;
  }
  return used;
}

/// Of every sender the pair that took longest.
std::vector<Link> slowestPairs(const Carried& carried, const std::set<Link>& covered) {
  std::map<Rank, std::pair<double, Link>> slowest;
  for (const auto& [link, seconds] : carried.seconds) {
    if (covered.contains(link)) continue;
    const auto [at, first] = slowest.try_emplace(link.from, seconds, link);
    if (!first && seconds > at->second.first) at->second = {seconds, link};
  }
  std::vector<std::pair<double, Link>> bySlowness;
  for (const auto& [sender, pair] : slowest) bySlowness.push_back(pair);
  std::stable_sort(bySlowness.begin(), bySlowness.end(),
                   [](const auto& one, const auto& other) { return one.first > other.first; });
  std::vector<Link> pairs;
  for (const auto& [seconds, link] : bySlowness) pairs.push_back(link);
  return pairs;
}

validate::TestedGroup testedGroup(const JobView& job, const CommunicatorFormed& communicator) {
  validate::TestedGroup group{.id = communicator.id, .jobRanks = communicator.jobRanks, .ring = communicator.ring};
  const Carried carried = carriedIn(job, communicator);
  group.trees = treesOf(job, communicator, carried);
  std::set<Link> covered;
  for (const validate::WaveLink& link : validate::linksOf(group)) covered.insert({link.from, link.to});
  group.pairs = slowestPairs(carried, covered);
  return group;
}

// The two links of a pair have nobody to be compared with: groups of the same size and role lend theirs.
void addPeers(const JobView& job, std::vector<validate::TestedGroup>& groups) {
  constexpr std::size_t enoughRanks = 6;
  std::size_t ranks = 0;
  for (const validate::TestedGroup& group : groups) ranks += group.jobRanks.size();
  if (groups.empty() || ranks >= enoughRanks) return;
  const auto shapes = shapesOf(job);
  const auto roles = instrument::inferRoles(shapes);
  const auto wanted = roles.find(groups.front().id);
  const std::size_t size = groups.front().jobRanks.size();
  for (const auto& [id, communicator] : job.communicators()) {
    if (ranks >= enoughRanks || wanted == roles.end() || wanted->second == instrument::CommunicatorRole::unknown)
      return;
    const auto role = roles.find(id);
    const bool known = std::any_of(groups.begin(), groups.end(), [&, at = id](const auto& group) {
      return group.id == at || group.jobRanks == job.communicators().at(at).jobRanks;
    });
    if (known || !communicator.hostEngine || communicator.jobRanks.size() != size || role == roles.end() ||
        role->second != wanted->second)
      continue;
    groups.push_back(testedGroup(job, communicator));
    groups.back().onlyCompared = true;
    ranks += size;
  }
}

}  // namespace

std::vector<validate::TestedGroup> testedGroups(const JobView& job, const diagnose::Suspicion& suspects) {
  std::vector<validate::TestedGroup> groups;
  for (const diagnose::GroupSuspect& suspect : suspects.groups) {
    const auto found = job.communicators().find(suspect.communicator);
    if (found == job.communicators().end() || !found->second.hostEngine) continue;
    groups.push_back(testedGroup(job, found->second));
  }
  addPeers(job, groups);
  return groups;
}

std::set<Link> onlyCompared(const std::vector<validate::TestedGroup>& groups) {
  std::vector<validate::TestedGroup> suspicious = groups;
  std::erase_if(suspicious, [](const validate::TestedGroup& group) { return group.onlyCompared; });
  std::set<Link> links;
  for (const validate::WaveLink& link : validate::linksOf(groups)) links.insert(link.link);
  for (const validate::WaveLink& link : validate::linksOf(suspicious)) links.erase(link.link);
  return links;
}

LinkTimes linkTimes(const JobView& job) {
  using ByConnection = std::map<std::pair<CommunicatorId, Link>, double>;
  ByConnection moving, grown;
  const auto keepLonger = [](ByConnection& seconds, CommunicatorId id, const Link& link, double value) {
    const auto [known, first] = seconds.try_emplace({id, link}, value);
    if (!first) known->second = std::max(known->second, value);
  };
  for (const auto& [process, member] : job.members()) {
    const auto healthyOnes = perIteration(member.healthyTransfers);
    for (const instrument::TransferProfile& now : perIteration(member.transfers)) {
      const auto communicator = job.communicators().find(now.communicator);
      const auto at = static_cast<std::size_t>(now.peer);
      if (communicator == job.communicators().end() || at >= communicator->second.jobRanks.size()) continue;
      const Rank self = member.identity.jobRank, peer = communicator->second.jobRanks[at];
      const Link link = now.sending ? Link{self, peer} : Link{peer, self};
      keepLonger(moving, now.communicator, link, now.moving);
      for (const instrument::TransferProfile& healthy : healthyOnes)
        if (healthy.communicator == now.communicator && healthy.peer == now.peer && healthy.sending == now.sending &&
            healthy.bytes > 0)
          keepLonger(grown, now.communicator, link, now.moving - healthy.moving * now.bytes / healthy.bytes);
    }
  }
  LinkTimes times;
  for (const auto& [connection, seconds] : moving) times.moving[connection.second] += seconds;
  for (const auto& [connection, seconds] : grown) times.grown[connection.second] += seconds;
  return times;
}

diagnose::Suspicion everybody(const JobView& job) {
  diagnose::Suspicion all;
  for (const auto& [id, communicator] : job.communicators())
    if (communicator.hostEngine) all.groups.push_back({.communicator = id, .slowest = {}});
  all.reason = "somebody asked for it";
  return all;
}

}  // namespace falcon::control
