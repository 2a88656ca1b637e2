// A file that others read while it is written anew: they see all of it or all of the old one.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

#include "base/result.h"

namespace falcon {

inline constexpr mode_t forThisUser = 0600, forAllToRead = 0644;

/// Follows no link: one at `path` is itself replaced, and the new file is made beside it under a name that nobody can
/// guess, since others may write to the folder too. After an error neither is there that was not before.
/// @param mode  the file's rights, less what the umask takes
Status writeWhole(const std::string& path, std::string_view content, mode_t mode = forThisUser);

}  // namespace falcon
