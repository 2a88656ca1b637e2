#include "plugin/profiler/profiler_v6.h"

#include "plugin/profiler/profiler_adapter.h"

namespace falcon::plugin {

std::unique_ptr<ProfilerCalls> adaptProfilerV6(const void* symbol) {
  return std::make_unique<ProfilerAdapterFrom5<EventV6, 6, eventsOfV6>>(symbol);
}

}  // namespace falcon::plugin
