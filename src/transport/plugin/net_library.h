// Finds and opens a net plugin's library.
#pragma once

#include "plugin/plugin_library.h"
#include "transport/plugin/net_calls.h"

namespace falcon::transport::net {

using NetLibrary = plugin::PluginLibrary<NetCalls>;

/// By a name of NCCL_NET_PLUGIN. Errors as of plugin::openPlugin().
inline Result<NetLibrary> loadNetLibrary(const std::string& name) {
  return plugin::loadPlugin({"net", "NET", "network"}, name, netVersions);
}

}  // namespace falcon::transport::net
