// The steps of connecting, for those who wait by a reactor; connectWithHello() of reactor.h takes all of them.
#pragma once

#include "base/owned.h"
#include "base/socket_address.h"
#include "transport/handshake.h"
#include "transport/reactor.h"

namespace falcon::transport {

/// A non-blocking socket, bound to `from` (its port is ignored; empty: any), on its way to `to`. Writable when decided.
Result<FileDescriptor> beginConnect(const SocketAddress& from, const SocketAddress& to);
/// Once it is writable: prepares it and sends the greeting's opening. Then `greeting` reads until it is complete.
Status finishConnect(int socket, const SocketAddress& to, Purpose purpose, Greeting& greeting);

}  // namespace falcon::transport
