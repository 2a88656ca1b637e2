#include "transport/tcp_state.h"

#include <linux/tcp.h>  // netinet/tcp.h ends before the times
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstddef>

namespace falcon::transport {

std::optional<Nanoseconds> underWay(int socket) {
  tcp_info info{};
  socklen_t length = sizeof info;
  if (::getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &length) != 0) return std::nullopt;
  if (length < offsetof(tcp_info, tcpi_rwnd_limited) + sizeof info.tcpi_rwnd_limited) return std::nullopt;
  // The kernel's busy time has those in it in which the receiver's window or our own buffer was the limit.
  return std::chrono::microseconds(info.tcpi_busy_time - std::min(info.tcpi_busy_time, info.tcpi_rwnd_limited));
}

}  // namespace falcon::transport
