#include "core/socket_options.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <atomic>
#include <cerrno>
#include <string>

#include "base/log.h"
#include "base/net_parameters.h"
#include "base/system_error.h"
#include "transport/fork_guard.h"
#include "transport/socket_options.h"

namespace falcon::net {

FileDescriptor newSocket(int family) {
  FileDescriptor socket = newDescriptor(::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket) return socket;
  const std::string control = parameters::netCongestionControl.value();
  if (!control.empty() && setsockopt(socket.get(), IPPROTO_TCP, TCP_CONGESTION, control.data(),
                                     static_cast<socklen_t>(control.size())) != 0) {
    static std::atomic<bool> said{false};
    if (!said.exchange(true))
      log::warn(
          "{}={} cannot be had: {}; the system's is used. /proc/sys/net/ipv4/tcp_available_congestion_control lists "
          "those that there are, tcp_allowed_congestion_control what may be used without CAP_NET_ADMIN",
          parameters::netCongestionControl.name(), control, reasonOf(errno));
  }
  return socket;
}

void prepareDataSocket(int socket) {
  transport::prepareSocket(socket, transport::Purpose::data);
  transport::closeInForkedChildren(socket);
}

}  // namespace falcon::net
