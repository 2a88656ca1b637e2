// The tuner plugin interface as its newest version has it, whichever one a plugin has.
#pragma once

#include <memory>
#include <vector>

#include "plugin/plugin_library.h"
#include "plugin/tuner/tuner_v7.h"

namespace falcon::plugin {

/// What a plugin is told of a communicator.
struct TunedCommunicator {
  std::uint64_t id = 0;
  int ranks = 1;
  int nodes = 1;
};

/// The table of costs, in microseconds.
using CostTable = float[tunerAlgorithms][tunerProtocols];

/// Used by one thread at a time for each context.
class TunerCalls {
 public:
  virtual ~TunerCalls() = default;

  virtual int version() const = 0;
  /// As the plugin calls itself; null is possible.
  virtual const char* name() const = 0;
  /// Members that must be there and are not.
  virtual std::vector<const char*> missing() const = 0;

  virtual ResultCode init(const TunedCommunicator& communicator, void** context) const = 0;
  /// @param operations  in the call's group
  /// @param channels    in and out: 0 where the plugin has no wish
  virtual ResultCode choose(void* context, TunedFunction function, std::size_t bytes, int operations, CostTable& costs,
                            int* channels) const = 0;
  virtual ResultCode finalize(void* context) const = 0;
};

std::unique_ptr<TunerCalls> adaptTunerV4(const void* symbol);
std::unique_ptr<TunerCalls> adaptTunerV5(const void* symbol);
std::unique_ptr<TunerCalls> adaptTunerV6(const void* symbol);
std::unique_ptr<TunerCalls> adaptTunerV7(const void* symbol);

inline constexpr PluginKind tunerKind{"tuner", "TUNER", "tuner"};
/// Newest first, as they are looked for.
inline constexpr PluginVersion<TunerCalls> tunerVersions[] = {{"ncclTunerPlugin_v7", adaptTunerV7},
                                                              {"ncclTunerPlugin_v6", adaptTunerV6},
                                                              {"ncclTunerPlugin_v5", adaptTunerV5},
                                                              {"ncclTunerPlugin_v4", adaptTunerV4}};

}  // namespace falcon::plugin
