// The profiler plugin interface as its newest version has it, whichever one a plugin has.
#pragma once

#include <memory>
#include <vector>

#include "plugin/plugin_library.h"
#include "plugin/profiler/profiler_v7.h"

namespace falcon::plugin {

/// What a plugin is told of a communicator.
struct ProfiledCommunicator {
  std::uint64_t id = 0;
  const char* name = nullptr;  ///< as the application calls it; null: not at all
  int nodes = 1;
  int ranks = 1;
  int rank = 0;
};

/// Thread-safe as far as the plugin is: NCCL calls start, stop and state from several threads.
class ProfilerCalls {
 public:
  virtual ~ProfilerCalls() = default;

  virtual int version() const = 0;
  /// As the plugin calls itself; null is possible.
  virtual const char* name() const = 0;
  /// The bits of EventBit that this version knows.
  virtual std::uint32_t knownEvents() const = 0;
  /// Members that must be there and are not.
  virtual std::vector<const char*> missing() const = 0;

  /// `mask` is the plugin's to change from then on, from any thread, as long as the process lives.
  virtual ResultCode init(const ProfiledCommunicator& communicator, void** context, int* mask) const = 0;
  /// Of a type that the version knows.
  virtual ResultCode start(void* context, void** handle, const Event& event) const = 0;
  virtual ResultCode stop(void* handle) const = 0;
  virtual ResultCode state(void* handle, EventState state, StateArguments* arguments) const = 0;
  virtual ResultCode finalize(void* context) const = 0;
};

std::unique_ptr<ProfilerCalls> adaptProfilerV4(const void* symbol);
std::unique_ptr<ProfilerCalls> adaptProfilerV5(const void* symbol);
std::unique_ptr<ProfilerCalls> adaptProfilerV6(const void* symbol);
std::unique_ptr<ProfilerCalls> adaptProfilerV7(const void* symbol);

inline constexpr PluginKind profilerKind{"profiler", "PROFILER", "profiler"};
/// Newest first, as they are looked for.
inline constexpr PluginVersion<ProfilerCalls> profilerVersions[] = {{"ncclProfiler_v7", adaptProfilerV7},
                                                                    {"ncclProfiler_v6", adaptProfilerV6},
                                                                    {"ncclProfiler_v5", adaptProfilerV5},
                                                                    {"ncclProfiler_v4", adaptProfilerV4}};

}  // namespace falcon::plugin
