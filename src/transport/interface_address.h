// Which of this host's addresses peers shall use: NCCL_SOCKET_IFNAME and NCCL_SOCKET_FAMILY, with NCCL's rules.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "base/socket_address.h"

namespace falcon::transport {

struct InterfaceAddress {
  std::string name;
  SocketAddress address;  ///< port 0
};

/// Every interface that NCCL_SOCKET_IFNAME allows, one address each, IPv4 where there is one; those of containers and
/// the loopback only where they are named, or one of them where there is nothing else. At least one. Error
/// (invalidUsage): none fits. The first is what chooseInterfaceAddress() (reactor.h) gives.
Result<std::vector<InterfaceAddress>> chooseInterfaces();

}  // namespace falcon::transport
