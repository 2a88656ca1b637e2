// What this process is to the others: where it listens, and with whom it shares memory.
#include <sys/stat.h>
#include <unistd.h>

#include <climits>
#include <fstream>

#include "base/format.h"
#include "base/log.h"
#include "base/parameters.h"
#include "transport/doorbell.h"
#include "transport/local_ports.h"

namespace falcon::transport {
namespace {

std::string nodeName() {
  if (const std::string name = parameters::hostId.value(); !name.empty()) return name;
  char host[HOST_NAME_MAX + 1] = "";
  gethostname(host, sizeof host - 1);
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  // Containers of one machine that do not share /dev/shm are taken for nodes of their own, as NCCL does.
  struct stat shared {};
  const bool known = stat("/dev/shm", &shared) == 0;
  return fmt::format("{}/{}/{}", host, boot, known ? shared.st_dev : 0);
}

}  // namespace

Result<Peer> localPeer(Reactor& reactor) {
  const auto& identity = processIdentity();
  if (!identity) return log::decided(identity.error());
  Peer peer;
  peer.address = reactor.address();
  peer.node = nodeName();
  peer.process = *identity;
  if (!parameters::shmDisable.value()) peer.doorbell = processDoorbell().name();
  return peer;
}

bool mayShareMemory(const Peer& one, const Peer& other) {
  return one.node == other.node && !one.doorbell.empty() && !other.doorbell.empty();
}

std::string describe(Rank rank, const Peer& peer) {
  if (peer.jobRank < 0 || peer.jobRank == rank) return fmt::format("rank {} ({})", rank, peer.address.text());
  return fmt::format("rank {} (rank {} of the job, {})", rank, peer.jobRank, peer.address.text());
}

}  // namespace falcon::transport
