// What our TCP connections have in common.
#pragma once

#include "base/socket_address.h"
#include "transport/reactor.h"

namespace falcon::transport {

/// No-delay, and keepalive so that a host that fell silent is noticed within NCCL_FALCON_DEATH_TIMEOUT. The
/// socket is connected.
void prepareSocket(int socket, Purpose purpose);

/// The socket will connect from this address; its port is chosen then, so that one port can serve many destinations.
/// False, errno set: it cannot have the address.
bool takeAddress(int socket, SocketAddress from);

}  // namespace falcon::transport
