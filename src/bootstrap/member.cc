#include "bootstrap/member.h"

#include <unistd.h>

#include <climits>

namespace falcon::bootstrap {

Member thisMember(const SocketAddress& address) {
  char name[HOST_NAME_MAX + 1] = "?";
  gethostname(name, sizeof name - 1);
  return {address, name, getpid()};
}

std::string nameOf(Rank rank, const Member& member) {
  return fmt::format("rank {} ({}, pid {})", rank, member.host, member.process);
}

std::string nameOf(Rank rank, const std::vector<Member>& members) {
  if (rank < 0 || rank >= static_cast<Rank>(members.size())) return fmt::format("rank {}", rank);
  return nameOf(rank, members[static_cast<std::size_t>(rank)]);
}

void write(WireWriter& writer, const Member& member) {
  write(writer, member.address);
  writer.put(std::string_view(member.host)).put(member.process);
}

Member readMember(WireReader& reader) {
  Member member;
  member.address = readAddress(reader);
  member.host = reader.getString();
  member.process = reader.get<std::int32_t>();
  return member;
}

// Family, port and address as numbers: a text would invite the resolver.
void write(WireWriter& writer, const SocketAddress& address) {
  const bool six = address.family() == AF_INET6;
  writer.put(static_cast<std::uint8_t>(six ? 6 : address.family() == AF_INET ? 4 : 0));
  if (address.empty()) return;
  writer.put(address.port());
  const auto* bytes =
      six ? reinterpret_cast<const char*>(&reinterpret_cast<const sockaddr_in6*>(address.get())->sin6_addr)
          : reinterpret_cast<const char*>(&reinterpret_cast<const sockaddr_in*>(address.get())->sin_addr);
  for (int i = 0; i < (six ? 16 : 4); ++i) writer.put(bytes[i]);
}

SocketAddress readAddress(WireReader& reader) {
  const auto family = reader.get<std::uint8_t>();
  if (family != 4 && family != 6) return {};
  const auto port = reader.get<std::uint16_t>();
  sockaddr_storage storage{};
  storage.ss_family = family == 6 ? AF_INET6 : AF_INET;
  auto* bytes = family == 6 ? reinterpret_cast<char*>(&reinterpret_cast<sockaddr_in6*>(&storage)->sin6_addr)
                            : reinterpret_cast<char*>(&reinterpret_cast<sockaddr_in*>(&storage)->sin_addr);
  for (int i = 0; i < (family == 6 ? 16 : 4); ++i) bytes[i] = reader.get<char>();
  SocketAddress address(reinterpret_cast<sockaddr*>(&storage), sizeof storage);
  address.setPort(port);
  return address;
}

void write(WireWriter& writer, const transport::Secret& secret) {
  for (const std::byte byte : secret) writer.put(byte);
}

transport::Secret readSecret(WireReader& reader) {
  transport::Secret secret{};
  for (std::byte& byte : secret) byte = reader.get<std::byte>();
  return secret;
}

}  // namespace falcon::bootstrap
