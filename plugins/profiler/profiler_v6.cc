// What NCCL loads as version 6.
#include "plugin/profiler/profiler_v6.h"

#include "plugin/profiler/older_events.h"
#include "profiler/exported.h"

namespace {

using namespace falcon::plugin;
using namespace falcon::profiler;

ResultCode init(void** context, std::uint64_t id, int* mask, const char* name, int nodes, int ranks, int rank, Logger) {
  return begin({id, name, nodes, ranks, rank}, context, mask);
}

ResultCode startEvent(void* context, void** handle, EventV6* event) {
  return currentObserver().start(context, handle, newestEvent(*event));
}

}  // namespace

extern "C" [[gnu::visibility("default")]] const ProfilerV6 ncclProfiler_v6{
    pluginName, init, startEvent, stopEvent, recordEventState, finalize};
