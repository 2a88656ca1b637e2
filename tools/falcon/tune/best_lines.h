// From times to the lines of a tuning file. Pure.
#pragma once

#include <string>
#include <vector>

#include "collectives/tuning.h"

namespace falcon::tune {

/// One algorithm's time at one size.
struct Sample {
  Operation operation;
  collectives::Extent extent;
  int ranks;
  std::size_t bytes;
  std::string algorithm;
  double microseconds;
};

/// What the library does without a file.
std::string builtInChoice(Operation operation, collectives::Extent extent, std::size_t bytes, int ranks);

/// The lines by operation, extent, ranks and size: each size gets its fastest algorithm, but the built-in choice stays
/// unless another is `worth` times as fast. They meet halfway between the sizes (in the logarithm), and go from 0 to no
/// end; fewer ranks come first, as the last line that applies counts.
std::vector<collectives::TuningLine> bestLines(std::vector<Sample> samples, double worth = 1.1);

}  // namespace falcon::tune
