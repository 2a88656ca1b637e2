// An IPv4 or IPv6 address with a port, as value.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <string>
#include <string_view>

#include "base/result.h"

namespace falcon {

class SocketAddress {
 public:
  SocketAddress() = default;
  SocketAddress(const sockaddr* address, socklen_t length);

  /// "127.0.0.1:4000", "[::1]:4000", "name:4000" (resolved).
  static Result<SocketAddress> parse(std::string_view text);
  /// The same without names: asks nobody, so fit for what comes from outside.
  static Result<SocketAddress> parseNumeric(std::string_view text);

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage_); }
  socklen_t length() const { return family() == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in); }
  int family() const { return storage_.ss_family; }
  bool empty() const { return family() == AF_UNSPEC; }
  std::uint16_t port() const;
  void setPort(std::uint16_t port);
  /// Without the port: "10.1.0.2".
  std::string host() const;
  /// "10.1.0.2:4000", "[fe80::1]:4000".
  std::string text() const;

 private:
  static Result<SocketAddress> parse(std::string_view text, int flags);

  sockaddr_storage storage_{};
};

}  // namespace falcon
