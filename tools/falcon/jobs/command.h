// `falcon status`, `falcon off`, `falcon suspend`, `falcon resume` and `falcon parameters`.
#pragma once

#include "subcommand.h"

namespace falcon::tools {
void addStatusCommand(CLI::App& app, int& exitCode);
void addOffCommand(CLI::App& app, int& exitCode);
void addSuspendCommand(CLI::App& app, int& exitCode);
void addResumeCommand(CLI::App& app, int& exitCode);
void addParametersCommand(CLI::App& app, int& exitCode);
}  // namespace falcon::tools
