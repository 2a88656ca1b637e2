// A driver's main loop: tasks come from the command line, or one by one from the orchestrator's socket, on which an
// idle rank sleeps without taking any time from the library that is being measured.
#pragma once

#include "library.h"

namespace falcon::bench {

/// `driver "all_reduce 65536 0.05 3 1" ...` measures these; `driver --control PATH` connects every rank to that Unix
/// socket, says "rank ranks", answers each line with one line (rank 0 with the result as JSON) and returns at its end.
/// Returns the process's exit code.
int serve(Library& library, int argc, char** argv);

}  // namespace falcon::bench
