#pragma once

#include <vector>

#include "subcommand.h"

namespace falcon::tools {

/// `falcon run`.
void addRunCommand(CLI::App& app, int& exitCode);

/// The command line in the form that CLI11 reads `falcon run -n 2 -- ls -l` from; other commands' words as they are.
std::vector<const char*> withProgramMarked(int argc, const char* const* argv);

}  // namespace falcon::tools
