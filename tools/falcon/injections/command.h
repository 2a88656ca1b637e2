#pragma once

#include "subcommand.h"

namespace falcon::tools {

void addInjectionsCommand(CLI::App& app, int& exitCode);

}  // namespace falcon::tools
