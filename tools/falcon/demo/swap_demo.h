// `falcon demo --swap`: a slow link that no ring avoids.
#pragma once

#include <cstdint>

namespace falcon::demo {

struct SwapDemoOptions {
  std::uint64_t seed = 1;
  bool json = false;
  bool keepLogs = false;
};

/// Trains two data-parallel replicas of two stages on four nodes, slows the link between the two that share a stage,
/// and watches whether ranks exchange their roles so that it carries little, and take that back when it is healthy
/// again. Then trains undisturbed, and compares the losses. @return exit code
int runSwapDemo(const SwapDemoOptions& options);

}  // namespace falcon::demo
