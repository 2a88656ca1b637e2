// What of a process's settings others may be shown.
#pragma once

#include <string>
#include <string_view>

namespace falcon {

/// NCCL_*, but for what may be a secret: names with SECRET, TOKEN, PASSWORD, PASSWD, CREDENTIAL or KEY in them.
bool mayBeShown(std::string_view name);

/// Those of this process's environment, as "NAME=value" with a 0 behind each: as /proc/<pid>/environ has them.
std::string shownSettings();

}  // namespace falcon
