#include "base/config_file.h"

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "base/per_process.h"

namespace falcon {
namespace {

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

std::map<std::string, std::string> readConfigFile(const std::string& path) {
  std::ifstream file(path);
  if (!file) return {};
  std::stringstream text;
  text << file.rdbuf();
  return parseConfigFile(text.str());
}

using Settings = std::map<std::string, std::string>;

Settings readConfigFiles() {
  std::string users;
  if (const char* named = getenv("NCCL_CONF_FILE"))
    users = named;
  else if (const char* home = getenv("HOME"))
    users = std::string(home) + "/.nccl.conf";
  auto settings = users.empty() ? Settings() : readConfigFile(users);
  settings.merge(readConfigFile("/etc/nccl.conf"));  // merge keeps what is there: the user's file wins
  return settings;
}

struct ConfigFiles {
  const Settings settings = readConfigFiles();
};

}  // namespace

std::map<std::string, std::string> parseConfigFile(std::string_view text) {
  std::map<std::string, std::string> settings;
  while (!text.empty()) {
    const auto end = text.find('\n');
    const auto line = trimmed(text.substr(0, end));
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
    const auto equals = line.find('=');
    if (line.empty() || line.front() == '#' || equals == std::string_view::npos) continue;
    const auto name = trimmed(line.substr(0, equals));
    if (!name.empty()) settings[std::string(name)] = trimmed(line.substr(equals + 1));
  }
  return settings;
}

std::optional<std::string> configured(const char* name) {
  if (const char* value = getenv(name)) return value;
  static constinit PerProcess<ConfigFiles> files;
  const Settings& settings = files.get().settings;
  const auto found = settings.find(name);
  if (found == settings.end()) return std::nullopt;
  return found->second;
}

}  // namespace falcon
