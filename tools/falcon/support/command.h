// `falcon report`.
#pragma once

#include "subcommand.h"

namespace falcon::tools {
void addReportCommand(CLI::App& app, int& exitCode);
}  // namespace falcon::tools
