// What plugins are given to call: their log lines become ours.
#pragma once

#include "transport/plugin/net_abi.h"

namespace falcon::transport::net {

/// From any thread of the plugin. Its lines obey NCCL_DEBUG as ours do.
[[gnu::format(printf, 5, 6)]] void logForPlugin(LogLevel level, unsigned long flags, const char* file, int line,
                                                const char* format, ...);

/// Events of a plugin's own, which nobody here wants.
ResultCode ignoreEvent(void** event, int type, void* parent, std::int64_t plugin, void* data);

}  // namespace falcon::transport::net
