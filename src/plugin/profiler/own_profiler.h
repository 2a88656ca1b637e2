// Which profiler plugin is ours, by what names it, and what NCCL_FALCON_PROFILER asks of it.
#pragma once

#include <string_view>

namespace falcon::profiler {

inline constexpr const char* ownProfilerFile = "libnccl-profiler-falcon.so";

/// Whether NCCL_PROFILER_PLUGIN has ours by this value: by its name, or the file's, wherever that lies.
constexpr bool isOwnProfiler(std::string_view plugin) {
  return plugin == "falcon" || plugin.ends_with(ownProfilerFile);
}

/// The words of parameters::ownProfiler in their order.
enum OwnProfilerWord : int { ownProfilerAuto, ownProfilerOff, ownProfilerOn };

}  // namespace falcon::profiler
