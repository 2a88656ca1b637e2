// What NCCL loads as version 7.
#include "plugin/profiler/profiler_v7.h"

#include "plugin/profiler/older_events.h"
#include "profiler/exported.h"

namespace {

using namespace falcon::plugin;
using namespace falcon::profiler;

ResultCode init(void** context, std::uint64_t id, int* mask, const char* name, int nodes, int ranks, int rank, Logger) {
  return begin({id, name, nodes, ranks, rank}, context, mask);
}

ResultCode startEvent(void* context, void** handle, EventV7* event) {
  return currentObserver().start(context, handle, newestEvent(*event));
}

}  // namespace

extern "C" [[gnu::visibility("default")]] const ProfilerV7 ncclProfiler_v7{
    pluginName, init, startEvent, stopEvent, recordEventState, finalize};

// What NCCL does not know, and Falcon's library does (plugin/profiler/outlet.h).
extern "C" [[gnu::visibility("default")]] bool ncclFalconServeWatched(const char* build, GetWatchedOutlet get) {
  return serveWatched(build, get);
}
