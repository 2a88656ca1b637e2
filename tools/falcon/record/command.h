// `falcon record FILE`.
#pragma once

#include "subcommand.h"

namespace falcon::tools {
void addRecordCommand(CLI::App& app, int& exitCode);
}
