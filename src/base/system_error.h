// What the kernel's error numbers mean for whoever has to mend it.
#pragma once

#include <string>

namespace falcon {

/// strerror(), and where a limit was met also the limit and how to raise it. Thread-safe.
std::string reasonOf(int number);

/// No descriptor could be had: this process's limit, or the machine's.
bool lacksDescriptors(int number);

}  // namespace falcon
