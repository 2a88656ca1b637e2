// Where a setting comes from: process environment, then NCCL_CONF_FILE or ~/.nccl.conf, then /etc/nccl.conf.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace falcon {

/// The setting's text, or nothing where nobody set it. Thread-safe; the files are read once a process.
std::optional<std::string> configured(const char* name);

/// `NAME=value` lines; '#' starts a comment line; blanks around names and values are dropped. Later lines win.
std::map<std::string, std::string> parseConfigFile(std::string_view text);

}  // namespace falcon
