#include "transport/socket_options.h"

#include <netinet/tcp.h>

#include <algorithm>

#include "base/parameters.h"

namespace falcon::transport {
namespace {

void setOption(int socket, int level, int option, int value) {
  setsockopt(socket, level, option, &value, sizeof value);
}

}  // namespace

void prepareSocket(int socket, Purpose purpose) {
  const auto milliseconds = std::chrono::duration_cast<std::chrono::milliseconds>(parameters::deathTimeout.value());
  const int limit = static_cast<int>(milliseconds.count());
  // A probe after a quarter of the limit of silence, then three more: a silent host is dead when the limit is over.
  const int quarter = std::max(1, limit / 4000);
  setOption(socket, IPPROTO_TCP, TCP_NODELAY, 1);
  setOption(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
  setOption(socket, IPPROTO_TCP, TCP_KEEPIDLE, quarter);
  setOption(socket, IPPROTO_TCP, TCP_KEEPINTVL, quarter);
  setOption(socket, IPPROTO_TCP, TCP_KEEPCNT, 3);
  // Keepalive is mute while bytes are on their way; the user timeout is not. But that also ends a connection whose
  // receiver does not read (a zero window), be it stopped, computing or starved: seen with 16 MiB gathers on a loaded
  // machine. So only where next to nothing is sent; communicators and their data learn of a silent host by the pulse.
  if (purpose == Purpose::pulse || purpose == Purpose::rendezvous)
    setOption(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, std::max(250, limit - 250));
  // The bus has no pulse; a controller that reads nothing for so long is as good as gone.
  if (purpose == Purpose::bus) setOption(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, std::max(30'000, limit));
}

}  // namespace falcon::transport
