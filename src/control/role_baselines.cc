#include "control/role_baselines.h"

#include <algorithm>

namespace falcon::control {
namespace {

using Ids = std::map<CommunicatorId, CommunicatorId>;

/// A communicator's members by their roles; empty: some have none.
std::vector<int> rolesIn(const CommunicatorFormed& communicator, std::span<const int> roles) {
  std::vector<int> members;
  for (const Rank rank : communicator.jobRanks) {
    if (rank < 0 || static_cast<std::size_t>(rank) >= roles.size()) return {};
    members.push_back(roles[static_cast<std::size_t>(rank)]);
  }
  return members;
}

CommunicatorId idNow(const Ids& ids, CommunicatorId before) {
  const auto now = ids.find(before);
  return now == ids.end() ? before : now->second;
}

/// Of each group of before, what the group of the same roles is now; two with the same members keep their order.
Ids idsNow(const JobView& job, const std::map<CommunicatorId, CommunicatorFormed>& before,
           std::span<const int> rolesBefore, std::span<const int> rolesNow) {
  std::multimap<std::vector<int>, CommunicatorId> made;
  for (const auto& [id, communicator] : job.communicators())
    if (!before.contains(id)) made.emplace(rolesIn(communicator, rolesNow), id);
  Ids ids;
  for (const auto& [id, communicator] : before) {
    if (job.communicators().contains(id)) continue;  // it is what it was
    const auto same = made.find(rolesIn(communicator, rolesBefore));
    if (same == made.end()) continue;
    ids[id] = same->second;
    made.erase(same);
  }
  return ids;
}

template <class Value>
std::map<CommunicatorId, Value> renamed(const std::map<CommunicatorId, Value>& values, const Ids& ids) {
  std::map<CommunicatorId, Value> now;
  for (const auto& [id, value] : values) now[idNow(ids, id)] = value;
  return now;
}

}  // namespace

std::vector<int> rolesOf(const JobView& job) {
  std::vector<int> roles;
  for (const auto& [process, member] : job.members()) {
    const Rank rank = member.identity.jobRank;
    if (rank < 0) continue;
    while (static_cast<std::size_t>(rank) >= roles.size()) roles.push_back(static_cast<int>(roles.size()));
    if (member.layout && member.layout->role >= 0) roles[static_cast<std::size_t>(rank)] = member.layout->role;
  }
  return roles;
}

void moveBaselines(JobView& job, const std::map<CommunicatorId, CommunicatorFormed>& before,
                   std::span<const int> rolesBefore, std::span<const int> rolesNow) {
  const Ids ids = idsNow(job, before, rolesBefore, rolesNow);
  struct Baseline {
    std::optional<RankMeans> healthy;
    double quotaCores = 0;
    TransferView transfers;
    std::vector<instrument::TimelineCall> calls;
    bool callsOnJobsClock = true;
  };
  std::map<int, Baseline> ofRole;
  const auto roleIn = [](std::span<const int> roles, Rank rank) {
    return rank >= 0 && static_cast<std::size_t>(rank) < roles.size() ? roles[static_cast<std::size_t>(rank)] : -1;
  };
  for (auto& [process, member] : job.members())
    ofRole[roleIn(rolesBefore, member.identity.jobRank)] = {member.healthy, member.healthyQuotaCores,
                                                            member.healthyTransfers, member.healthyCalls,
                                                            member.healthyCallsOnJobsClock};
  for (auto& [process, member] : job.members()) {
    member.recent.clear();
    member.transfers = {};
    member.calls.clear();
    const auto found = ofRole.find(roleIn(rolesNow, member.identity.jobRank));
    if (found == ofRole.end()) continue;
    Baseline baseline = found->second;
    if (baseline.healthy) {
      baseline.healthy->inLibrary = renamed(baseline.healthy->inLibrary, ids);
      baseline.healthy->calls = renamed(baseline.healthy->calls, ids);
    }
    for (TransferSum& sum : baseline.transfers.sums) sum.id = idNow(ids, sum.id);
    for (instrument::TimelineCall& call : baseline.calls) call.communicator = idNow(ids, call.communicator);
    member.healthy = std::move(baseline.healthy);
    member.healthyQuotaCores = baseline.quotaCores;
    member.healthyTransfers = std::move(baseline.transfers);
    member.healthyCalls = std::move(baseline.calls);
    member.healthyCallsOnJobsClock = baseline.callsOnJobsClock;
  }
}

}  // namespace falcon::control
