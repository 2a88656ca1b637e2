#pragma once

#include "subcommand.h"

namespace falcon::tools {

/// `falcon inject slow-rank | slow-link | hang | memory-hog`.
void addInjectCommand(CLI::App& app, int& exitCode);

}  // namespace falcon::tools
