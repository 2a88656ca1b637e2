#include "base/socket_address.h"

#include <arpa/inet.h>
#include <netdb.h>

#include <charconv>
#include <cstring>
#include <memory>

namespace falcon {

SocketAddress::SocketAddress(const sockaddr* address, socklen_t length) {
  std::memcpy(&storage_, address, std::min<size_t>(length, sizeof storage_));
}

Result<SocketAddress> SocketAddress::parse(std::string_view text) {
  return parse(text, 0);
}

Result<SocketAddress> SocketAddress::parseNumeric(std::string_view text) {
  return parse(text, AI_NUMERICHOST);
}

Result<SocketAddress> SocketAddress::parse(std::string_view text, int flags) {
  const auto colon = text.rfind(':');
  const std::string_view port = colon == std::string_view::npos ? std::string_view() : text.substr(colon + 1);
  // getaddrinfo would take 65536 for 0, and blanks and signs too.
  std::uint16_t number = 0;
  const auto [end, problem] = std::from_chars(port.data(), port.data() + port.size(), number);
  if (colon == 0 || port.empty() || problem != std::errc() || end != port.data() + port.size())
    return Error::invalidArgument("'{}' is not address:port, e.g. 127.0.0.1:4000 or [::1]:4000", text);
  std::string host(text.substr(0, colon));
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags;
  addrinfo* list = nullptr;
  if (const int failed = getaddrinfo(host.c_str(), nullptr, &hints, &list); failed != 0)
    return Error::invalidArgument("'{}' cannot be resolved to an address: {}", text, gai_strerror(failed));
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(list, freeaddrinfo);
  SocketAddress address(list->ai_addr, list->ai_addrlen);
  address.setPort(number);
  return address;
}

std::uint16_t SocketAddress::port() const {
  if (family() == AF_INET6) return ntohs(reinterpret_cast<const sockaddr_in6&>(storage_).sin6_port);
  return ntohs(reinterpret_cast<const sockaddr_in&>(storage_).sin_port);
}

void SocketAddress::setPort(std::uint16_t port) {
  if (family() == AF_INET6)
    reinterpret_cast<sockaddr_in6&>(storage_).sin6_port = htons(port);
  else
    reinterpret_cast<sockaddr_in&>(storage_).sin_port = htons(port);
}

std::string SocketAddress::host() const {
  char text[INET6_ADDRSTRLEN] = "?";
  if (family() == AF_INET6)
    inet_ntop(AF_INET6, &reinterpret_cast<const sockaddr_in6&>(storage_).sin6_addr, text, sizeof text);
  else if (family() == AF_INET)
    inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in&>(storage_).sin_addr, text, sizeof text);
  return text;
}

std::string SocketAddress::text() const {
  return fmt::format(fmt::runtime(family() == AF_INET6 ? "[{}]:{}" : "{}:{}"), host(), port());
}

}  // namespace falcon
