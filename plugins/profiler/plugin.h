// This process's observer, which all versions of the interface share, and its outlet.
#pragma once

#include "profiler/observer.h"

namespace falcon::profiler {

/// By NCCL_FALCON, NCCL_FALCON_PROFILER and NCCL_FALCON_CHAINED_PROFILER, read when the first communicator begins. A
/// forked child has one of its own, from its first communicator on.
Observer& processObserver();
/// The last that processObserver() gave. For events, which come often.
Observer& currentObserver();

inline constexpr const char* pluginName = "Falcon";

}  // namespace falcon::profiler
