#include "core/listener_handle.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "base/log.h"
#include "base/sha256.h"

namespace falcon::net {
namespace {

constexpr std::uint64_t magic = 0x3154454e4e434c46;  // "FLCNNET1"

struct Layout {
  std::uint64_t magic;
  std::uint64_t listener;
  std::array<std::byte, 16> secret;
  std::array<std::byte, 16> address;
  std::uint32_t scope;
  std::uint16_t family;
  std::uint16_t port;
  std::uint64_t sum;
  std::uint64_t dialling;
};
static_assert(sizeof(Layout) <= transport::net::handleBytes);

std::uint64_t sumOf(const Layout& layout) {
  const auto bytes = std::as_bytes(std::span(&layout, 1)).first(offsetof(Layout, sum));
  const Digest digest = Sha256().add(std::string_view(networkName)).add(bytes).finish();
  std::uint64_t sum = 0;
  std::memcpy(&sum, digest.data(), sizeof sum);
  return sum;
}

void putAddress(const SocketAddress& from, Layout& to) {
  to.family = static_cast<std::uint16_t>(from.family());
  to.port = from.port();
  if (from.family() == AF_INET6) {
    const auto& its = *reinterpret_cast<const sockaddr_in6*>(from.get());
    std::memcpy(to.address.data(), &its.sin6_addr, sizeof its.sin6_addr);
    to.scope = its.sin6_scope_id;
  } else {
    const auto& its = *reinterpret_cast<const sockaddr_in*>(from.get());
    std::memcpy(to.address.data(), &its.sin_addr, sizeof its.sin_addr);
  }
}

SocketAddress addressOf(const Layout& from) {
  sockaddr_in6 six{};
  sockaddr_in four{};
  SocketAddress address;
  if (from.family == AF_INET6) {
    six.sin6_family = AF_INET6;
    six.sin6_scope_id = from.scope;
    std::memcpy(&six.sin6_addr, from.address.data(), sizeof six.sin6_addr);
    address = SocketAddress(reinterpret_cast<const sockaddr*>(&six), sizeof six);
  } else {
    four.sin_family = AF_INET;
    std::memcpy(&four.sin_addr, from.address.data(), sizeof four.sin_addr);
    address = SocketAddress(reinterpret_cast<const sockaddr*>(&four), sizeof four);
  }
  address.setPort(from.port);
  return address;
}

}  // namespace

void write(const ListenerHandle& from, Handle to) {
  Layout layout{};
  layout.magic = magic;
  layout.listener = from.listener;
  layout.secret = from.secret;
  putAddress(from.address, layout);
  layout.sum = sumOf(layout);
  layout.dialling = from.dialling;
  std::fill(to.begin(), to.end(), std::byte{0});
  std::memcpy(to.data(), &layout, sizeof layout);
}

Result<ListenerHandle> readHandle(Handle from) {
  Layout layout;
  std::memcpy(&layout, from.data(), sizeof layout);
  const bool known = layout.magic == magic && (layout.family == AF_INET || layout.family == AF_INET6);
  if (!known || layout.sum != sumOf(layout))
    return log::decided(Error::invalidArgument(
        "the handle to connect to is none of {}'s, or was changed on its way: all ranks need the same net plugin",
        networkName));
  return ListenerHandle{addressOf(layout), layout.listener, layout.secret, layout.dialling};
}

void noteDialling(Handle handle, std::uint64_t dialling) {
  std::memcpy(handle.data() + offsetof(Layout, dialling), &dialling, sizeof dialling);
}

std::uint64_t diallingIn(Handle handle) {
  std::uint64_t dialling = 0;
  std::memcpy(&dialling, handle.data() + offsetof(Layout, dialling), sizeof dialling);
  return dialling;
}

}  // namespace falcon::net
