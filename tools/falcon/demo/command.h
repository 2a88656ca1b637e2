// `falcon demo`: the main job, twice, with fail-slows injected; truth against verdict.
#pragma once

#include "subcommand.h"

namespace falcon::tools {
void addDemoCommand(CLI::App& app, int& exitCode);
}
