#include "control/network_conditions.h"

#include "base/socket_address.h"

namespace falcon::control {
namespace {

/// "10.1.0.2" of "10.1.0.2:4000"; what is no address of that kind (a device's name) as it is.
std::string hostOf(const std::string& address) {
  const auto parsed = SocketAddress::parseNumeric(address);
  return parsed ? parsed->host() : address;
}

}  // namespace

std::map<Link, diagnose::NetCondition> networkConditions(const JobView& job) {
  std::multimap<std::string, Rank> ranksAt;
  for (const auto& [process, member] : job.members())
    if (!member.identity.address.empty()) ranksAt.emplace(hostOf(member.identity.address), member.identity.jobRank);
  std::map<Link, diagnose::NetCondition> conditions;
  for (const auto& [process, member] : job.members())
    for (const NetCondition& each : member.transfers.net) {
      const auto [first, last] = ranksAt.equal_range(hostOf(each.peer));
      for (auto rank = first; rank != last; ++rank) {
        if (rank->second == member.identity.jobRank) continue;
        const auto [known, isNew] = conditions.try_emplace({member.identity.jobRank, rank->second},
                                                           diagnose::NetCondition{each.condition, each.score});
        if (!isNew && each.score > known->second.score) known->second = {each.condition, each.score};
      }
    }
  return conditions;
}

}  // namespace falcon::control
