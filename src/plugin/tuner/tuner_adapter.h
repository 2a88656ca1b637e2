// What the adapters of all versions do alike.
#pragma once

#include "plugin/plugin_log.h"
#include "plugin/tuner/tuner_calls.h"
#include "plugin/tuner/tuner_v4.h"

namespace falcon::plugin {

/// @tparam Plugin  the version's struct; it lives as long as the process
template <class Plugin, int number>
class TunerAdapter : public TunerCalls {
 public:
  explicit TunerAdapter(const void* symbol) : plugin_(*static_cast<const Plugin*>(symbol)) {}

  int version() const final { return number; }
  const char* name() const final { return plugin_.name; }
  std::vector<const char*> missing() const final {
    std::vector<const char*> missing;
    if (!plugin_.name) missing.push_back("name");
    if (!plugin_.init) missing.push_back("init");
    if (!plugin_.getCollInfo) missing.push_back("getCollInfo");
    if (!hasEnd()) missing.push_back(number == 4 ? "destroy" : "finalize");
    return missing;
  }
  ResultCode choose(void* context, TunedFunction function, std::size_t bytes, int operations, CostTable& costs,
                    int* channels) const final {
    return plugin_.getCollInfo(context, function, bytes, operations, reinterpret_cast<float**>(&costs), tunerAlgorithms,
                               tunerProtocols, 0, channels);
  }

 protected:
  virtual bool hasEnd() const = 0;
  const Plugin& plugin_;
};

/// Versions from 5 on are told of constants to change. The host engine estimates without any: what a plugin makes of
/// these zeros is not looked at.
template <class Plugin, class Constants, int number>
class TunerAdapterFrom5 final : public TunerAdapter<Plugin, number> {
 public:
  using TunerAdapter<Plugin, number>::TunerAdapter;

  ResultCode init(const TunedCommunicator& communicator, void** context) const override {
    // No NVLink: each rank is a domain of its own.
    NvlDomains domains{communicator.ranks, 1, 1};
    Constants constants{};
    return this->plugin_.init(context, communicator.id, static_cast<std::size_t>(communicator.ranks),
                              static_cast<std::size_t>(communicator.nodes), logForPlugin, &domains, &constants);
  }
  ResultCode finalize(void* context) const override { return this->plugin_.finalize(context); }

 private:
  bool hasEnd() const override { return this->plugin_.finalize != nullptr; }
};

}  // namespace falcon::plugin
