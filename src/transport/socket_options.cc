#include "transport/socket_options.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>

#include "base/parameters.h"

namespace falcon::transport {
namespace {

void setOption(int socket, int level, int option, int value) {
  setsockopt(socket, level, option, &value, sizeof value);
}

/// Both ends have the same address.
bool staysInThisHost(int socket) {
  sockaddr_storage here{}, there{};
  socklen_t hereLength = sizeof here, thereLength = sizeof there;
  if (getsockname(socket, reinterpret_cast<sockaddr*>(&here), &hereLength) != 0 ||
      getpeername(socket, reinterpret_cast<sockaddr*>(&there), &thereLength) != 0 || here.ss_family != there.ss_family)
    return false;
  if (here.ss_family == AF_INET6)
    return IN6_ARE_ADDR_EQUAL(&reinterpret_cast<const sockaddr_in6*>(&here)->sin6_addr,
                              &reinterpret_cast<const sockaddr_in6*>(&there)->sin6_addr);
  return here.ss_family == AF_INET && reinterpret_cast<const sockaddr_in*>(&here)->sin_addr.s_addr ==
                                          reinterpret_cast<const sockaddr_in*>(&there)->sin_addr.s_addr;
}

/// Finds out that the peer's host has fallen silent.
void watchTheOtherHost(int socket, Purpose purpose, int limit) {
  // A probe after a quarter of the limit of silence, then three more: a silent host is dead when the limit is over.
  const int quarter = std::max(1, limit / 4000);
  setOption(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
  setOption(socket, IPPROTO_TCP, TCP_KEEPIDLE, quarter);
  setOption(socket, IPPROTO_TCP, TCP_KEEPINTVL, quarter);
  setOption(socket, IPPROTO_TCP, TCP_KEEPCNT, 3);
  // Keepalive is mute while bytes are on their way; the user timeout is not. But that also ends a connection whose
  // receiver does not read (a zero window), be it stopped, computing or starved: seen with 16 MiB gathers on a loaded
  // machine. So only where next to nothing is sent; communicators and their data learn of a silent host by the pulse.
  if (purpose == Purpose::pulse || purpose == Purpose::rendezvous)
    setOption(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, std::max(250, limit - 250));
}

}  // namespace

void prepareSocket(int socket, Purpose purpose) {
  const auto milliseconds = std::chrono::duration_cast<std::chrono::milliseconds>(parameters::deathTimeout.value());
  const int limit = static_cast<int>(milliseconds.count());
  setOption(socket, IPPROTO_TCP, TCP_NODELAY, 1);
  // A host is not silent to itself: inside of it the kernel tells of every death at once. And of 2000 connections
  // between 64 processes, at a load of 85 on two cores, three that nobody was using were taken for dead.
  if (!staysInThisHost(socket)) watchTheOtherHost(socket, purpose, limit);
  // The bus has no pulse; a controller that reads nothing for so long is as good as gone.
  if (purpose == Purpose::bus) setOption(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, std::max(30'000, limit));
}

bool takeAddress(int socket, SocketAddress from) {
  from.setPort(0);
  setOption(socket, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1);
  return bind(socket, from.get(), from.length()) == 0;
}

}  // namespace falcon::transport
