#include "transport/pacing.h"

#include <netinet/in.h>
#include <netinet/tcp.h>

#include <array>
#include <string_view>

#include "base/socket_address.h"

namespace falcon::transport {
namespace {

constexpr std::string_view pacing = "bbr", unpaced = "reno";

using NameOfAnEnd = decltype(getsockname);

std::string hostOf(int socket, NameOfAnEnd* end) {
  sockaddr_storage storage{};
  socklen_t length = sizeof storage;
  auto* address = reinterpret_cast<sockaddr*>(&storage);
  return end(socket, address, &length) == 0 ? SocketAddress(address, length).host() : "";
}

/// Both ends have the same address: what is sent never leaves the host.
bool staysInHost(int socket) {
  const std::string own = hostOf(socket, getsockname);
  return !own.empty() && own == hostOf(socket, getpeername);
}

bool isPaced(int socket) {
  std::array<char, 32> name{};
  socklen_t length = name.size() - 1;
  return getsockopt(socket, IPPROTO_TCP, TCP_CONGESTION, name.data(), &length) == 0 && name.data() == pacing;
}

}  // namespace

Pacing::Pacing(int socket) : socket_(socket), chooses_(isPaced(socket) && staysInHost(socket)) {}

void Pacing::pace(bool wanted) {
  const std::string_view name = wanted ? pacing : unpaced;
  // Where it is refused it stays as it is, and is not asked for again.
  chooses_ = setsockopt(socket_, IPPROTO_TCP, TCP_CONGESTION, name.data(), static_cast<socklen_t>(name.size())) == 0;
  paced_ = wanted;
  smallInARow_ = 0;
}

}  // namespace falcon::transport
