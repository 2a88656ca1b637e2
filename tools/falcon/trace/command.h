// `falcon trace [FILE...]`.
#pragma once

#include "subcommand.h"

namespace falcon::tools {
void addTraceCommand(CLI::App& app, int& exitCode);
}
