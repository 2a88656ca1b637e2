// `falcon exec`: starts a program with Falcon before its NCCL.
#pragma once

#include "subcommand.h"

namespace falcon::tools {

void addExecCommand(CLI::App& app, int& exitCode);

}  // namespace falcon::tools
