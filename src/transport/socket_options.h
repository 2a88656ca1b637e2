// What our TCP connections have in common.
#pragma once

#include "transport/reactor.h"

namespace falcon::transport {

/// No-delay, and keepalive so that a host that fell silent is noticed within NCCL_FALCON_DEATH_TIMEOUT. The
/// socket is connected.
void prepareSocket(int socket, Purpose purpose);

}  // namespace falcon::transport
