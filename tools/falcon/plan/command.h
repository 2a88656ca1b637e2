// `falcon plan`.
#pragma once

#include "subcommand.h"

namespace falcon::tools {
void addPlanCommand(CLI::App& app, int& exitCode);
}  // namespace falcon::tools
