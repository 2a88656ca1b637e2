#include "plugin/profiler/profiler_v5.h"

#include "plugin/profiler/profiler_adapter.h"

namespace falcon::plugin {

std::unique_ptr<ProfilerCalls> adaptProfilerV5(const void* symbol) {
  return std::make_unique<ProfilerAdapterFrom5<EventV5, 5, eventsOfV5>>(symbol);
}

}  // namespace falcon::plugin
