#pragma once

#include "subcommand.h"

namespace falcon::tools {

/// `falcon run`.
void addRunCommand(CLI::App& app, int& exitCode);

}  // namespace falcon::tools
