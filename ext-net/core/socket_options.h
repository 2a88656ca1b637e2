// How our data sockets are made.
#pragma once

#include "base/owned.h"

namespace falcon::net {

/// Does not block; has the congestion control of NCCL_FALCON_NET_CONGESTION_CONTROL, which sockets that are accepted by
/// it inherit. Empty, errno set: none could be had.
FileDescriptor newSocket(int family);

/// Of a connected socket: no-delay, keepalive towards another host, and closed in forked children.
void prepareDataSocket(int socket);

}  // namespace falcon::net
