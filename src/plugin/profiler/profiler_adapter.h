// What the adapters of all versions do alike.
#pragma once

#include "plugin/plugin_log.h"
#include "plugin/profiler/older_events.h"
#include "plugin/profiler/profiler_calls.h"

namespace falcon::plugin {

/// @tparam Plugin  the version's struct; it lives as long as the process
template <class Plugin, class PluginEvent, int number, std::uint32_t known>
class ProfilerAdapter : public ProfilerCalls {
 public:
  explicit ProfilerAdapter(const void* symbol) : plugin_(*static_cast<const Plugin*>(symbol)) {}

  int version() const final { return number; }
  const char* name() const final { return plugin_.name; }
  std::uint32_t knownEvents() const final { return known; }
  std::vector<const char*> missing() const final {
    std::vector<const char*> missing;
    const auto need = [&](const char* member, bool there) {
      if (!there) missing.push_back(member);
    };
    need("name", plugin_.name != nullptr);
    need("init", plugin_.init != nullptr);
    need("startEvent", plugin_.startEvent != nullptr);
    need("stopEvent", plugin_.stopEvent != nullptr);
    need("recordEventState", plugin_.recordEventState != nullptr);
    need("finalize", plugin_.finalize != nullptr);
    return missing;
  }

  ResultCode start(void* context, void** handle, const Event& event) const final {
    PluginEvent its = olderEvent<PluginEvent>(event);
    return plugin_.startEvent(context, handle, &its);
  }
  ResultCode stop(void* handle) const final { return plugin_.stopEvent(handle); }
  ResultCode state(void* handle, EventState state, StateArguments* arguments) const final {
    return plugin_.recordEventState(handle, state, arguments);
  }
  ResultCode finalize(void* context) const final { return plugin_.finalize(context); }

 protected:
  const Plugin& plugin_;
};

template <class PluginEvent, int number, std::uint32_t known>
class ProfilerAdapterFrom5 final : public ProfilerAdapter<ProfilerFrom5<PluginEvent>, PluginEvent, number, known> {
 public:
  using ProfilerAdapter<ProfilerFrom5<PluginEvent>, PluginEvent, number, known>::ProfilerAdapter;

  ResultCode init(const ProfiledCommunicator& communicator, void** context, int* mask) const override {
    return this->plugin_.init(context, communicator.id, mask, communicator.name, communicator.nodes, communicator.ranks,
                              communicator.rank, logForPlugin);
  }
};

}  // namespace falcon::plugin
