// One rank of a job that measures the algorithms.
#pragma once

#include <string>

#include "tune/best_lines.h"

namespace falcon::tune {

struct RankOptions {
  collectives::Extent extent = collectives::Extent::node;
  std::size_t mostBytes = 0;
  double seconds = 0;  ///< of each measurement; every algorithm has five at every size
  std::string folder;  ///< for files that are needed meanwhile
};

/// The file in `folder` that rank 0 appends samples to, one a line.
std::string samplesPath(const std::string& folder);
std::vector<Sample> readSamples(const std::string& folder);

/// Measures as this process's part of the job that `falcon run` started. Throws std::runtime_error when a call fails.
void runRankPart(const RankOptions& options);

}  // namespace falcon::tune
