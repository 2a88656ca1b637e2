// `falcon replay`: a change-point detector over recorded iteration times.
#pragma once

#include "subcommand.h"

namespace falcon::tools {
void addReplayCommand(CLI::App& app, int& exitCode);
}
