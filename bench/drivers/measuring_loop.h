// The measuring loop, the same for every library.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "library.h"

namespace falcon::bench {

struct Task {
  Collective collective;
  std::size_t bytes;
  double seconds;  ///< to be spent on measuring, warm-up not counted
  int batches;
  bool verify;
};

/// Reads "all_reduce 65536 0.05 3 1". Nothing if it is not that.
std::optional<Task> parseTask(const std::string& line);

struct Measurement {
  bool supported = false;
  std::vector<double> microseconds;  ///< a call's time in each batch: the slowest rank's time over the calls
  long calls = 0;                    ///< in each batch
  double wrong = 0;                  ///< elements, of the rank with most
};

/// All ranks call it with the same task. Buffers are fresh pages, touched before. The calls of a batch follow each
/// other without a pause, as in nccl-tests; a barrier stands before each batch. A library that takes much longer than
/// it was given is let go after fewer batches.
Measurement measure(Library& library, const Task& task);

}  // namespace falcon::bench
