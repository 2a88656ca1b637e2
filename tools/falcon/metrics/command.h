// `falcon metrics`.
#pragma once

#include "subcommand.h"

namespace falcon::tools {
void addMetricsCommand(CLI::App& app, int& exitCode);
}  // namespace falcon::tools
