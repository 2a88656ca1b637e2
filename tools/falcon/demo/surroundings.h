// What a job of ours may do on this machine.
#pragma once

#include <string>

namespace falcon::demo {

/// Tried with a job that does nothing; its output goes to the folder.
bool mayUseNamespaces(const std::string& programs, const std::string& folder);
bool mayUseCgroups(const std::string& programs, const std::string& folder);

}  // namespace falcon::demo
