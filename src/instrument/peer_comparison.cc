#include "instrument/peer_comparison.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <tuple>

#include "base/median.h"

namespace falcon::instrument {
namespace {

constexpr std::size_t fewestPeers = 3;
// From here on computing is to blame.
constexpr double waitingPerTransfer = 2;

using Comparisons = std::map<Rank, RankComparison>;

/// What the members of a group spend in it, seconds an iteration.
struct GroupTime {
  Rank last = -1;       ///< who waits least, because it comes last
  double transfer = 0;  ///< its time in the group
  double waiting = 0;   ///< what the others spend beside, in the middle of them
  double usualOwn = 0;  ///< outside of the library, in the middle of all members
};

/// Nothing where a member is not known.
std::optional<GroupTime> timeOf(const CommunicatorShape& shape, const Comparisons& ranks) {
  std::vector<double> all, own;
  GroupTime time{.transfer = INFINITY};
  for (const Rank member : shape.members) {
    const auto rank = ranks.find(member);
    if (rank == ranks.end()) return std::nullopt;
    own.push_back(rank->second.now.own);
    for (const CommunicatorTime& each : rank->second.now.communicators) {
      if (each.communicator != shape.communicator) continue;
      all.push_back(each.seconds);
      if (each.seconds < time.transfer) time.last = member, time.transfer = each.seconds;
    }
  }
  if (all.empty()) return std::nullopt;
  time.waiting = median(all) - time.transfer;
  time.usualOwn = median(own);
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

std::vector<RankComparison> besidePeers(std::span<const RankNow> ranks,
                                        std::span<const CommunicatorShape> communicators) {
  if (ranks.size() < fewestPeers) return {};
  Comparisons comparisons;
  for (const auto& [rank, profile] : ranks) {
    RankComparison& each = comparisons[rank] = {rank, profile, profile};
    each.healthy.communicators.clear();
  }
  const auto roles = inferRoles(communicators);
  for (const auto& peers : ranksOfEqualWork(communicators, roles)) {
    std::vector<double> own;
    for (const Rank rank : peers)
      if (const auto known = comparisons.find(rank); known != comparisons.end()) own.push_back(known->second.now.own);
    if (own.size() < fewestPeers) continue;
    const double usual = median(own);
    for (const Rank rank : peers)
      if (const auto known = comparisons.find(rank); known != comparisons.end()) known->second.healthy.own = usual;
  }

  std::map<GroupKind, std::vector<std::pair<const CommunicatorShape*, double>>> kinds;
  for (const CommunicatorShape& shape : communicators) {
    const CommunicatorRole role = roles.at(shape.communicator);
    const auto time = timeOf(shape, comparisons);
    if (role == CommunicatorRole::unknown || !time) continue;
    kinds[kindOf(shape, role)].emplace_back(&shape, time->transfer);
    const bool equalWork = role == CommunicatorRole::data || role == CommunicatorRole::tensor;
    if (!equalWork || shape.members.size() < fewestPeers || time->usualOwn <= 0) continue;
    RankComparison& last = comparisons.at(time->last);
    const double longer = last.now.own - time->usualOwn;
    if (time->waiting < waitingPerTransfer * time->transfer || 2 * longer < time->waiting) continue;
    last.waitedFor = true;
    last.healthy.own = std::min(last.healthy.own, time->usualOwn);
  }
  for (const auto& [kind, groups] : kinds) {
    if (groups.size() < fewestPeers) continue;
    std::vector<double> all;
    for (const auto& [shape, seconds] : groups) all.push_back(seconds);
    const double usual = median(all);
    for (const auto& [shape, seconds] : groups)
      for (const Rank member : shape->members)
        comparisons.at(member).healthy.communicators.push_back({shape->communicator, usual});
  }
  std::vector<RankComparison> all;
  for (auto& [rank, comparison] : comparisons) all.push_back(std::move(comparison));
  return all;
}

}  // namespace falcon::instrument
