#include "instrument/peer_comparison.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "base/format.h"
#include "instrument/communicator_names.h"

namespace falcon::instrument {
namespace {

constexpr std::size_t fewestPeers = 3;

double medianOf(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

using Profiles = std::map<Rank, const RankProfile*>;

/// What the members of a group spend in it, seconds an iteration.
struct GroupTime {
  Rank last = -1;       ///< who waits least, because it comes last
  double transfer = 0;  ///< its time in the group
  double waiting = 0;   ///< what the others spend beside, in the middle of them
  double usualOwn = 0;  ///< outside of the library, in the middle of all members
};

/// Nothing where a member is not known.
std::optional<GroupTime> timeOf(const CommunicatorShape& shape, const Profiles& profiles) {
  std::vector<double> all, own;
  GroupTime time{.transfer = INFINITY};
  for (const Rank member : shape.members) {
    const auto profile = profiles.find(member);
    if (profile == profiles.end()) return std::nullopt;
    own.push_back(profile->second->own);
    for (const CommunicatorTime& each : profile->second->communicators) {
      if (each.communicator != shape.communicator) continue;
      all.push_back(each.seconds);
      if (each.seconds < time.transfer) time.last = member, time.transfer = each.seconds;
    }
  }
  if (all.empty()) return std::nullopt;
  time.waiting = medianOf(all) - time.transfer;
  time.usualOwn = medianOf(own);
  return time;
}

/// Groups beside each other: of equal role, size and calls, with about as many bytes.
using GroupKind = std::tuple<CommunicatorRole, std::size_t, long, long, long>;
GroupKind kindOf(const CommunicatorShape& shape, CommunicatorRole role) {
  constexpr double steps = 8;  // of a doubling: volumes that differ by less than a tenth count as equal
  return {role, shape.members.size(), std::lround(shape.collectives), std::lround(shape.messages),
          shape.bytes > 0 ? std::lround(steps * std::log2(shape.bytes)) : -1};
}

}  // namespace

Suspicion comparePeers(std::span<const RankNow> ranks, std::span<const CommunicatorShape> communicators,
                       const PeerRules& rules) {
  Suspicion result;
  Profiles profiles;
  std::vector<double> iterations;
  for (const RankNow& each : ranks) {
    profiles[each.rank] = &each.profile;
    iterations.push_back(each.profile.own + each.profile.inLibrary);
  }
  if (ranks.size() < fewestPeers) {
    result.reason = fmt::format("{} ranks are too few to compare", ranks.size());
    return result;
  }
  const double least = rules.leastShare * medianOf(iterations);
  const auto roles = inferRoles(communicators);

  std::set<Rank> slow;
  for (const auto& peers : ranksOfEqualWork(communicators, roles)) {
    std::vector<double> own;
    for (const Rank rank : peers)
      if (const auto profile = profiles.find(rank); profile != profiles.end()) own.push_back(profile->second->own);
    if (own.size() < fewestPeers) continue;
    const double usual = medianOf(own);
    for (const Rank rank : peers) {
      const auto profile = profiles.find(rank);
      if (profile == profiles.end() || usual <= 0) continue;
      const double growth = profile->second->own / usual;
      if (growth < rules.computeGrowth || profile->second->own - usual < least) continue;
      result.ranks.push_back({rank, growth});
      slow.insert(rank);
    }
  }

  std::map<GroupKind, std::vector<std::pair<const CommunicatorShape*, double>>> kinds;
  for (const CommunicatorShape& shape : communicators) {
    const CommunicatorRole role = roles.at(shape.communicator);
    const auto time = timeOf(shape, profiles);
    if (role == CommunicatorRole::unknown || !time) continue;
    kinds[kindOf(shape, role)].emplace_back(&shape, time->transfer);
    const bool equalWork = role == CommunicatorRole::data || role == CommunicatorRole::tensor;
    if (!equalWork || shape.members.size() < fewestPeers || time->usualOwn <= 0 || slow.contains(time->last)) continue;
    // Whose partners wait for it, and who is outside for as long as they wait.
    const double own = profiles.at(time->last)->own, excess = own - time->usualOwn;
    if (time->waiting < rules.waitingGrowth * time->transfer || excess < least || 2 * excess < time->waiting) continue;
    if (own < rules.transferGrowth * time->usualOwn) continue;
    result.ranks.push_back({time->last, own / time->usualOwn});
    slow.insert(time->last);
  }
  for (const auto& [kind, groups] : kinds) {
    if (groups.size() < fewestPeers) continue;
    std::vector<double> all;
    for (const auto& [shape, seconds] : groups) all.push_back(seconds);
    const double usual = medianOf(all);
    for (const auto& [shape, seconds] : groups) {
      const bool explained =
          std::any_of(shape->members.begin(), shape->members.end(), [&](Rank member) { return slow.contains(member); });
      if (explained || usual <= 0 || seconds / usual < rules.transferGrowth || seconds - usual < least) continue;
      result.groups.push_back({shape->communicator, seconds / usual, {}});
    }
  }

  const auto worstFirst = [](const auto& a, const auto& b) { return a.growth > b.growth; };
  std::stable_sort(result.ranks.begin(), result.ranks.end(), worstFirst);
  std::stable_sort(result.groups.begin(), result.groups.end(), worstFirst);
  const CommunicatorNames names(communicators);
  const auto say = [&](const std::string& text) { result.reason += (result.reason.empty() ? "" : ", ") + text; };
  for (const ComputeSuspect& each : result.ranks)
    say(fmt::format("rank {} computes {:.2f}x as long as ranks that do the same", each.rank, each.growth));
  for (const GroupSuspect& each : result.groups)
    say(fmt::format("communication among {} takes {:.2f}x as long as among others like it",
                    names.membersOf(each.communicator), each.growth));
  if (result.empty())
    result.reason = fmt::format("nobody of {} ranks is slower than those that do the same", ranks.size());
  return result;
}

}  // namespace falcon::instrument
