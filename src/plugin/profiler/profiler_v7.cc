#include "plugin/profiler/profiler_v7.h"

#include "plugin/profiler/profiler_adapter.h"

namespace falcon::plugin {

std::unique_ptr<ProfilerCalls> adaptProfilerV7(const void* symbol) {
  return std::make_unique<ProfilerAdapterFrom5<EventV7, 7, eventsOfV7>>(symbol);
}

}  // namespace falcon::plugin
