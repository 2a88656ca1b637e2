// The process that people start, signal and wait for.
#pragma once

#include "run/options.h"

namespace falcon::tools {

/// Runs the job to its end. @return what `falcon run` exits with
/// Meanwhile signals are passed on to the job and do not end this process.
/// @param asked  set to the one of SIGINT, SIGTERM, SIGHUP and SIGQUIT that would have ended this process
int launch(const RunOptions& options, int* asked = nullptr);

}  // namespace falcon::tools
