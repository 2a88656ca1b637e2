// Runs a helper program (ip, tc) and collects what it says. It reads nothing.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace falcon::tools {

struct ProgramRun {
  std::vector<std::string> command;  ///< the first is searched in PATH and in the sbin folders
  int netNamespace = -1;             ///< descriptor of the network namespace to run it in; -1: this one
};

/// What the program wrote to stdout. An error with the command and its output where it could not be run or failed.
Result<std::string> runProgram(const ProgramRun& run);

}  // namespace falcon::tools
