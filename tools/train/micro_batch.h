// The tokens of one micro-batch.
#pragma once

#include <cstdint>
#include <vector>

namespace falcon::train {

/// [sequence][position]; targets are the inputs' successors.
struct MicroBatch {
  std::vector<std::int32_t> inputs;
  std::vector<std::int32_t> targets;
};

}  // namespace falcon::train
