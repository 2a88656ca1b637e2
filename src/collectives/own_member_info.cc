#include "collectives/own_member_info.h"

#include <unistd.h>

#include <utility>

#include "base/job_rank.h"
#include "transport/local_ports.h"

namespace falcon::collectives {
namespace {

std::string hostName() {
  char name[256] = {};
  gethostname(name, sizeof name - 1);
  return name;
}

}  // namespace

Result<MemberInfo> ownMemberInfo(transport::Reactor& reactor, int device, std::string extra) {
  auto peer = transport::localPeer(reactor);
  if (!peer) return peer.error();
  MemberInfo info{std::move(*peer), hostName(), getpid(), device, std::move(extra)};
  info.peer.jobRank = jobRankFromEnvironment();
  return info;
}

}  // namespace falcon::collectives
