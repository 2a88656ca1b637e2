// Finds and opens a net plugin's library.
#pragma once

#include <dlfcn.h>

#include "falcon_net_state.h"
#include "plugin/plugin_library.h"
#include "transport/plugin/net_calls.h"

namespace falcon::transport::net {

using NetLibrary = plugin::PluginLibrary<NetCalls>;

/// By a name of NCCL_NET_PLUGIN. Errors as of plugin::openPlugin().
inline Result<NetLibrary> loadNetLibrary(const std::string& name) {
  return plugin::loadPlugin({"net", "NET", "network"}, name, netVersions);
}

/// What the plugin tells of the network; null: it does not. Lives as long as the process.
inline const falconNetState_v1_t* stateOf(const NetLibrary& library) {
  return static_cast<const falconNetState_v1_t*>(dlsym(library.library, FALCON_NET_STATE_SYMBOL));
}

}  // namespace falcon::transport::net
