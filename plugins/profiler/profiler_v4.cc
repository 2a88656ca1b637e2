// What NCCL loads as version 4.
#include "plugin/profiler/profiler_v4.h"

#include "plugin/profiler/older_events.h"
#include "profiler/exported.h"

namespace {

using namespace falcon::plugin;
using namespace falcon::profiler;

ResultCode init(void** context, int* mask, const char* name, std::uint64_t id, int nodes, int ranks, int rank, Logger) {
  return begin({id, name, nodes, ranks, rank}, context, mask);
}

ResultCode startEvent(void* context, void** handle, EventV4* event) {
  return currentObserver().start(context, handle, newestEvent(*event));
}

}  // namespace

extern "C" [[gnu::visibility("default")]] const ProfilerV4 ncclProfiler_v4{
    pluginName, init, startEvent, stopEvent, recordEventState, finalize};
