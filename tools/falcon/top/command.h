// `falcon top [JOB]`.
#pragma once

#include "subcommand.h"

namespace falcon::tools {
void addTopCommand(CLI::App& app, int& exitCode);
}
