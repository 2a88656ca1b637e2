// This process's observer, which all versions of the interface share, and its outlet.
#pragma once

#include "profiler/observer.h"

namespace falcon::profiler {

/// By NCCL_FALCON, NCCL_FALCON_PROFILER and NCCL_FALCON_CHAINED_PROFILER, and whether Falcon's library is served, read
/// when the first communicator begins. A forked child has one of its own, from its first communicator on.
Observer& processObserver();
/// The last that processObserver() gave. For events, which come often.
Observer& currentObserver();

/// ServeWatched, which is called before any communicator begins.
bool serveWatched(const char* build, GetWatchedOutlet get);

inline constexpr const char* pluginName = "Falcon";

}  // namespace falcon::profiler
