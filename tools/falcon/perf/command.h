// `falcon perf`: nccl-tests' columns and options.
#pragma once

#include "subcommand.h"

namespace falcon::tools {
void addPerfCommand(CLI::App& app, int& exitCode);
}
