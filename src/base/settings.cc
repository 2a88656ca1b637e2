#include "base/settings.h"

#include <algorithm>

extern char** environ;

namespace falcon {

bool mayBeShown(std::string_view name) {
  constexpr std::string_view secrets[] = {"SECRET", "TOKEN", "PASSWORD", "PASSWD", "CREDENTIAL", "KEY"};
  return name.starts_with("NCCL_") && std::none_of(std::begin(secrets), std::end(secrets), [&](std::string_view word) {
           return name.find(word) != std::string_view::npos;
         });
}

std::string shownSettings() {
  std::string settings;
  for (char** entry = environ; entry && *entry; ++entry) {
    const std::string_view setting(*entry);
    if (mayBeShown(setting.substr(0, setting.find('=')))) settings.append(setting).append(1, '\0');
  }
  return settings;
}

}  // namespace falcon
