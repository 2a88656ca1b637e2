#include "verbs/port_rule.h"

#include "base/text.h"

namespace falcon::net {

bool allowsPort(std::string_view rule, std::string_view device, int port) {
  if (rule.empty()) return true;
  const bool excludes = rule.starts_with('^');
  if (excludes) rule.remove_prefix(1);
  const bool isExact = rule.starts_with('=');
  if (isExact) rule.remove_prefix(1);
  bool isNamed = false;
  for (const std::string_view entry : split(rule, ',')) {
    const auto colon = entry.find(':');
    const auto name = entry.substr(0, colon);
    if (name.empty() || !(isExact ? device == name : device.starts_with(name))) continue;
    isNamed = isNamed || colon == std::string_view::npos || leadingNumber<int>(entry.substr(colon + 1)) == port;
  }
  return isNamed != excludes;
}

}  // namespace falcon::net
