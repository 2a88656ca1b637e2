// `falcon watch`.
#pragma once

#include "subcommand.h"

namespace falcon::tools {
void addWatchCommand(CLI::App& app, int& exitCode);
}  // namespace falcon::tools
