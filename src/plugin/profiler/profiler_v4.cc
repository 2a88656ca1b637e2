#include "plugin/profiler/profiler_v4.h"

#include "plugin/profiler/profiler_adapter.h"

namespace falcon::plugin {
namespace {

class ProfilerAdapterV4 final : public ProfilerAdapter<ProfilerV4, EventV4, 4, eventsOfV4> {
 public:
  using ProfilerAdapter::ProfilerAdapter;

  ResultCode init(const ProfiledCommunicator& communicator, void** context, int* mask) const override {
    return plugin_.init(context, mask, communicator.name, communicator.id, communicator.nodes, communicator.ranks,
                        communicator.rank, logForPlugin);
  }
};

}  // namespace

std::unique_ptr<ProfilerCalls> adaptProfilerV4(const void* symbol) {
  return std::make_unique<ProfilerAdapterV4>(symbol);
}

}  // namespace falcon::plugin
