// `falcon sim`: what can be tried without a job.
#pragma once

#include "subcommand.h"

namespace falcon::tools {
void addSimCommand(CLI::App& app, int& exitCode);
}
