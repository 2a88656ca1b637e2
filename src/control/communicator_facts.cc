#include "control/communicator_facts.h"

#include "collectives/member_info.h"

namespace falcon::control {

CommunicatorFormed formedFrom(const KnownCommunicator& communicator) {
  CommunicatorFormed formed;
  formed.id = communicator.membership->id();
  formed.hostEngine = communicator.host != nullptr;
  for (const collectives::MemberInfo& member : communicator.members) {
    formed.jobRanks.push_back(member.peer.jobRank);
    formed.nodes.push_back(member.peer.node);
  }
  if (communicator.host) formed.ring = formed.firstRing = communicator.host->ringOrder();
  return formed;
}

instrument::CommunicatorEntry logEntryOf(const KnownCommunicator& communicator) {
  const Membership& membership = *communicator.membership;
  instrument::CommunicatorEntry entry{membership.id(),     membership.rank(),
                                      membership.device(), membership.kind() == EngineKind::vendor,
                                      communicator.name,   {}};
  const std::vector<int> nodes = collectives::nodesOf(communicator.members);
  for (std::size_t rank = 0; rank < nodes.size(); ++rank)
    entry.members.push_back({communicator.members[rank].peer.jobRank, nodes[rank]});
  return entry;
}

}  // namespace falcon::control
