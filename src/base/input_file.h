// Files that a user names to a tool.
#pragma once

#include <cstddef>
#include <string>

#include "base/result.h"

namespace falcon {

/// A mistaken name must not fill the memory. A recording of 1000 ranks has some 300 MB.
inline constexpr std::size_t inputFileLimit = std::size_t{1} << 30;

/// All of a file, or of a pipe that somebody writes to. Not of a device: /dev/zero never ends.
/// Errors (system): it cannot be read; (invalidArgument): it is a folder or device, or has more than `limit` bytes.
Result<std::string> readInputFile(const std::string& path, std::size_t limit = inputFileLimit);

/// All of standard input, whatever it is. Errors as above.
Result<std::string> readStandardInput(std::size_t limit = inputFileLimit);

}  // namespace falcon
