// The process that people start, signal and wait for.
#pragma once

#include "run/options.h"

namespace falcon::tools {

/// Runs the job to its end. @return what `falcon run` exits with
int launch(const RunOptions& options);

}  // namespace falcon::tools
