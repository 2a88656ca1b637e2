// Which other profiler plugin is told what NCCL tells ours.
#pragma once

#include <string>

namespace falcon::profiler {

/// NCCL_FALCON_CHAINED_PROFILER. Where that is not set, and NCCL has taken this plugin without having been told to (it
/// goes by the name of the default one, which Falcon's library uses), the net plugin's own, which NCCL would have taken
/// else: net plugins are loaded before. "": none.
std::string chainedName();

}  // namespace falcon::profiler
