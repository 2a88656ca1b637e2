// Two sockets that are connected over the loopback.
#pragma once

#include <sys/socket.h>

#include <stdexcept>

#include "base/owned.h"
#include "base/socket_address.h"

namespace falcon::test {

struct TcpPair {
  TcpPair() {
    const FileDescriptor listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const SocketAddress any = *SocketAddress::parseNumeric("127.0.0.1:0");
    sockaddr_in bound{};
    socklen_t length = sizeof bound;
    if (bind(listener.get(), any.get(), any.length()) || listen(listener.get(), 1) ||
        getsockname(listener.get(), reinterpret_cast<sockaddr*>(&bound), &length) ||
        connect(sender.get(), reinterpret_cast<const sockaddr*>(&bound), length)) {
      throw std::runtime_error("no connection over loopback");
    }
    receiver.reset(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  }

  FileDescriptor sender{socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  FileDescriptor receiver;  ///< nonblocking
};

}  // namespace falcon::test
