#include "transport/interface_address.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <vector>

#include "base/log.h"
#include "base/parameters.h"
#include "base/system_error.h"
#include "transport/reactor.h"

namespace falcon::transport {
namespace {

struct Interface {
  std::string name;
  SocketAddress address;
  bool loopback;
};

bool linkLocal(const SocketAddress& address) {
  return address.family() == AF_INET6 &&
         IN6_IS_ADDR_LINKLOCAL(&reinterpret_cast<const sockaddr_in6*>(address.get())->sin6_addr);
}

Result<std::vector<Interface>> interfacesThatAreUp() {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return Error::system("the network interfaces cannot be listed: {}", reasonOf(errno));
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(list, freeifaddrs);
  std::vector<Interface> found;
  for (const ifaddrs* entry = list; entry; entry = entry->ifa_next) {
    if (!entry->ifa_addr || !(entry->ifa_flags & IFF_UP)) continue;
    const int family = entry->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    SocketAddress address(entry->ifa_addr, family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6));
    address.setPort(0);
    if (linkLocal(address)) continue;  // useless to others without a scope
    found.push_back({entry->ifa_name, address, (entry->ifa_flags & IFF_LOOPBACK) != 0});
  }
  // IPv4 first: a host name's IPv6 address is often not routed.
  std::stable_partition(found.begin(), found.end(),
                        [](const Interface& one) { return one.address.family() == AF_INET; });
  return found;
}

/// `^` in front excludes all that follow; `=` (after it) wants exact names; else the names are prefixes.
bool selects(std::string_view rule, std::string_view name) {
  const bool exclude = rule.starts_with('^');
  if (exclude) rule.remove_prefix(1);
  const bool exact = rule.starts_with('=');
  if (exact) rule.remove_prefix(1);
  bool matches = false;
  while (!rule.empty()) {
    const auto comma = rule.find(',');
    const auto wanted = rule.substr(0, comma);
    if (!wanted.empty()) matches = matches || (exact ? name == wanted : name.starts_with(wanted));
    rule = comma == std::string_view::npos ? std::string_view() : rule.substr(comma + 1);
  }
  return matches != exclude;
}

bool container(std::string_view name) {
  return name.starts_with("docker") || name.starts_with("virbr");
}

}  // namespace

Result<std::vector<InterfaceAddress>> chooseInterfaces() {
  auto interfaces = interfacesThatAreUp();
  if (!interfaces) return log::decided(interfaces.error());
  const int familyWord = parameters::socketFamily.value();
  if (familyWord != 0)
    std::erase_if(*interfaces,
                  [&](const Interface& one) { return one.address.family() != (familyWord == 1 ? AF_INET : AF_INET6); });

  const std::string rule = parameters::socketInterface.value();
  const bool named = !rule.empty() && !rule.starts_with('^');
  std::vector<InterfaceAddress> chosen;
  const Interface* fallback = nullptr;
  for (const Interface& one : *interfaces) {
    if (!rule.empty() && !selects(rule, one.name)) continue;
    const bool lastResort = one.loopback || container(one.name);
    const bool another = std::none_of(chosen.begin(), chosen.end(),
                                      [&](const InterfaceAddress& taken) { return taken.name == one.name; });
    if ((named || !lastResort) && another) chosen.push_back({one.name, one.address});
    if (!fallback || (one.loopback && !fallback->loopback)) fallback = &one;
  }
  if (chosen.empty() && fallback) chosen.push_back({fallback->name, fallback->address});
  if (!chosen.empty()) return chosen;

  std::string names;
  for (const Interface& one : *interfaces) names += (names.empty() ? "" : ", ") + one.name + " " + one.address.host();
  return log::decided(Error::invalidUsage("no network interface fits NCCL_SOCKET_IFNAME={}{}; those that are up: {}",
                                          rule.empty() ? "(not set)" : rule,
                                          familyWord ? " and NCCL_SOCKET_FAMILY" : "", names.empty() ? "none" : names));
}

Result<SocketAddress> chooseInterfaceAddress() {
  const auto chosen = chooseInterfaces();
  return chosen ? Result<SocketAddress>(chosen->front().address) : chosen.error();
}

}  // namespace falcon::transport
