#include "collectives/member_exchange.h"

#include "base/parameters.h"
#include "collectives/own_member_info.h"
#include "transport/reactor.h"

namespace falcon::collectives {

Result<std::vector<MemberInfo>> exchangeMembers(bootstrap::CommunicatorNetwork& network, int device,
                                                std::string extra) {
  auto reactor = transport::processReactor();
  if (!reactor) return reactor.error();
  auto mine = ownMemberInfo(**reactor, device, std::move(extra));
  if (!mine) return mine.error();
  WireWriter writer;
  write(writer, *mine);
  const auto gathered = network.allGather(writer.bytes(), parameters::initTimeout.value());
  if (!gathered) return gathered.error();
  std::vector<MemberInfo> members;
  for (const std::string& bytes : *gathered) {
    WireReader reader(bytes);
    auto theirs = readMemberInfo(reader);
    if (!theirs) return theirs.error();
    members.push_back(std::move(*theirs));
  }
  return members;
}

}  // namespace falcon::collectives
