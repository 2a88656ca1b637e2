// What is in a folder.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace falcon {

/// The names in `folder`, without "." and "..", in no order. std::filesystem's iterator is not for the library: its
/// step is noexcept and takes memory, so where there is none it ends the process.
Result<std::vector<std::string>> namesIn(const std::string& folder);

}  // namespace falcon
