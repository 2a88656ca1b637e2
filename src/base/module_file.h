// Modules of ours: libraries that are opened when first needed, so that what always runs depends on no BLAS, no CUDA
// and no Prometheus.
#pragma once

#include <string>

#include "base/result.h"

namespace falcon {

/// Where the module is (see base/own_files.h), or should be: beside the library that contains this code.
std::string modulePath(const char* fileName);

/// Opens the library with RTLD_LOCAL, for as long as the process lives. Errors (system): what the loader says.
Result<void*> openModule(const std::string& path);

/// Opens it likewise and looks `symbol` up.
Result<void*> symbolOfModule(const std::string& path, const char* symbol);

}  // namespace falcon
