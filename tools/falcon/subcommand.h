// What every subcommand of `falcon` is: a function that adds itself to the program.
#pragma once

#include <CLI/CLI.hpp>

namespace falcon::tools {

/// What `falcon` returns. `falcon run` returns the job's own code instead.
enum ExitCode : int { healthy = 0, toolFailed = 1, badUsage = 2, failSlowFound = 3 };

/// One subcommand: adds its options to `app`, and a callback that does the work and sets `exitCode`.
using AddCommand = void (*)(CLI::App& app, int& exitCode);

}  // namespace falcon::tools
