// A file that others read while it is written anew: they see all of it or all of the old one.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace falcon {

/// For this user alone. Follows no link at `path`, which may lie in a folder that others know.
Status writeWhole(const std::string& path, std::string_view content);

}  // namespace falcon
