// Network namespaces without a name: they live as long as a process or a descriptor refers to them, so nothing is left
// behind however the owner ends.
#pragma once

#include <string>

#include "base/owned.h"
#include "base/result.h"

namespace falcon::tools {

/// Makes an empty network namespace; this process stays in its own. The descriptor closes on exec.
/// Only for a process with one thread: the thread is in the new namespace for a moment.
Result<FileDescriptor> makeNetNamespace();

/// Opens a namespace given as a path, such as /proc/<pid>/ns/net.
Result<FileDescriptor> openNetNamespace(const std::string& path);

/// Path under which other processes can open the namespace while process `owner` holds `descriptor`.
std::string pathOfNetNamespace(int owner, int descriptor);

}  // namespace falcon::tools
