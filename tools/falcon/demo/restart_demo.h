// `falcon demo --restart`: a rank that nothing else helps against.
#pragma once

#include <cstdint>

namespace falcon::demo {

struct RestartDemoOptions {
  std::uint64_t seed = 1;
  bool json = false;
  bool keepLogs = false;
};

/// Trains on one data-parallel replica, so that no work can be moved, makes a rank's place slow for good, and watches
/// whether the job is restarted with a spare there. Then trains undisturbed, and compares the losses. @return exit code
int runRestartDemo(const RestartDemoOptions& options);

}  // namespace falcon::demo
