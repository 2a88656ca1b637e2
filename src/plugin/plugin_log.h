// What plugins are given to call: their log lines become ours.
#pragma once

#include "plugin/plugin_abi.h"

namespace falcon::plugin {

/// From any thread of the plugin. Its lines obey NCCL_DEBUG as ours do.
[[gnu::format(printf, 5, 6)]] void logForPlugin(LogLevel level, unsigned long flags, const char* file, int line,
                                                const char* format, ...);

}  // namespace falcon::plugin
