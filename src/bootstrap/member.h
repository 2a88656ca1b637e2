// What all ranks of a communicator know of each.
#pragma once

#include <string>
#include <vector>

#include "base/socket_address.h"
#include "base/types.h"
#include "base/wire.h"
#include "transport/reactor.h"

namespace falcon::bootstrap {

struct Member {
  SocketAddress address;  ///< of its reactor
  std::string host;
  std::int32_t process = 0;
};

/// This process, reachable at `address`.
Member thisMember(const SocketAddress& address);

/// "rank 3 (node7, pid 4711)"
std::string nameOf(Rank rank, const Member& member);
std::string nameOf(Rank rank, const std::vector<Member>& members);

/// Errors read as empty addresses and show in reader.ok().
void write(WireWriter& writer, const Member& member);
Member readMember(WireReader& reader);
void write(WireWriter& writer, const SocketAddress& address);
SocketAddress readAddress(WireReader& reader);
void write(WireWriter& writer, const transport::Secret& secret);
transport::Secret readSecret(WireReader& reader);

}  // namespace falcon::bootstrap
