// Where the files of this build or installation lie: found from where this code was loaded, since the tree can be
// moved.
#pragma once

#include <optional>
#include <string>

namespace falcon {

/// The library (or program) that contains this code; "" where the system does not say.
std::string ownFile();
/// The folder of the library (or program) that contains this code, without a slash at its end; "" where the system does
/// not say.
std::string ownFolder();

/// The path of a library of ours: beside this code, or where programs of an installation or of the build look for it.
/// Nothing: it is in none of these.
std::optional<std::string> ownLibrary(const std::string& fileName);

}  // namespace falcon
