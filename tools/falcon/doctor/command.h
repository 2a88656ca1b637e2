// `falcon doctor`: tests processors, memory and links before a job. `falcon probe`: a small job again and again.
#pragma once

#include "subcommand.h"

namespace falcon::tools {
void addDoctorCommand(CLI::App& app, int& exitCode);
void addProbeCommand(CLI::App& app, int& exitCode);
}  // namespace falcon::tools
