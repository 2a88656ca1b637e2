#include "control/memory_facts.h"

#include <algorithm>
#include <limits>
#include <map>
#include <string>

namespace falcon::control {

void addMemory(const JobView& job, rebalance::JobFacts& facts) {
  if (facts.roles.empty()) return;
  // All who share a pool may take another role at the same time: nodes move as a whole.
  std::map<std::string, double> sharers;
  for (const auto& [process, member] : job.members())
    for (const MemoryPart& part : member.memory.parts) ++sharers[part.pool];
  if (sharers.empty()) return;
  facts.memoryLeft.assign(facts.roles.size(), std::numeric_limits<double>::infinity());
  facts.memoryOfRole.assign(facts.roles.size(), memoryOfNewGroups);
  for (const auto& [process, member] : job.members()) {
    const auto rank = static_cast<std::size_t>(member.identity.jobRank);
    if (!member.layout || rank >= facts.roles.size()) continue;
    for (const MemoryPart& part : member.memory.parts)
      facts.memoryLeft[rank] =
          std::min(facts.memoryLeft[rank], static_cast<double>(part.bytesLeft) / sharers[part.pool]);
    const auto role = static_cast<std::size_t>(facts.roles[rank]);
    if (role < facts.memoryOfRole.size()) facts.memoryOfRole[role] += static_cast<double>(member.layout->stateBytes);
  }
}

}  // namespace falcon::control
