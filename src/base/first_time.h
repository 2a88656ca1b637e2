// What is to be said once a process and no more.
#pragma once

#include <string>

namespace falcon {

/// True the first time that this process asks for `what`. Thread-safe; a forked child begins anew.
bool firstTime(const std::string& what);

}  // namespace falcon
