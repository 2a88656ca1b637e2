// Which library of NCCL a program would load, and what it is, without starting the program.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace falcon::tools {

struct LoadedLibrary {
  std::string path;         ///< "": none was found
  std::string how;          ///< "linked", "linked by .../libtorch_cuda.so", "a package of the interpreter"
  bool compiledIn = false;  ///< NCCL is part of the program, or of what it loads: nothing can stand before it
};

/// `program`: its words, the first searched in PATH; a script's interpreter is looked at. Starts the loader, and for
/// Python the interpreter, each for a moment. Errors: the program cannot be found.
Result<LoadedLibrary> libraryOf(const std::vector<std::string>& program);

/// What a file is that is to be NCCL: asked in a child process, since opening a library runs its code.
struct LibraryFacts {
  int version = 0;         ///< as NCCL_VERSION_CODE
  bool isFalcon = false;   ///< NCCL Falcon's own libnccl.so.2
  int devices = 0;         ///< CUDA devices that a process here may use
  bool hasDriver = false;  ///< there is a CUDA driver
};
/// Errors: it cannot be opened, is no NCCL, or is older than what Falcon can watch.
Result<LibraryFacts> factsOf(const std::string& path);

/// One line: what the library is, whether Falcon can serve it, and who would move the data.
std::string describe(const std::string& path, const LibraryFacts& facts);

/// The interpreter that a script's first line names and its argument, e.g. {"/usr/bin/env", "python3"}; empty: it is
/// none.
std::vector<std::string> interpreterOf(const std::string& firstLine);

}  // namespace falcon::tools
