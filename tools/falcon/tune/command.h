// `falcon tune`: measures the algorithms and writes a tuning file.
#pragma once

#include "subcommand.h"

namespace falcon::tools {
void addTuneCommand(CLI::App& app, int& exitCode);
}
