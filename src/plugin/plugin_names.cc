#include "plugin/plugin_names.h"

#include <algorithm>

#include "base/format.h"

namespace falcon::plugin {
namespace {

// Whatever the program's locale is.
char lower(char letter) {
  return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
}

bool isPathOrFile(std::string_view name) {
  return name.find('/') != std::string_view::npos || (name.starts_with("lib") && name.ends_with(".so"));
}

}  // namespace

bool sameWithoutCase(std::string_view one, std::string_view other) {
  return std::ranges::equal(one, other, {}, lower, lower);
}

std::vector<std::string> pluginNames(std::string_view list) {
  std::vector<std::string> names;
  if (sameWithoutCase(list, "none")) return names;
  while (!list.empty()) {
    const auto end = std::min(list.find(','), list.size());
    if (end > 0 && names.size() < mostPlugins) names.emplace_back(list.substr(0, end));
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return names;
}

std::vector<std::string> filesOf(std::string_view kind, const std::string& name) {
  if (sameWithoutCase(name, "STATIC_PLUGIN")) return {""};
  if (isPathOrFile(name)) return {name};
  return {name, fmt::format("libnccl-{}-{}.so", kind, name)};
}

}  // namespace falcon::plugin
