// Finds and opens a plugin's library.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "falcon_net_state.h"
#include "transport/plugin/net_calls.h"

namespace falcon::transport::net {

/// A plugin by the newest version of the interface that both it and we know.
struct NetLibrary {
  std::string file;  ///< as it was opened
  std::unique_ptr<NetCalls> calls;
  const falconNetState_v1_t* state = nullptr;  ///< what it tells of the network, where it does
};

/// By a name of NCCL_NET_PLUGIN. The library stays loaded until the process ends: threads of its own may run on.
/// Errors (system), not logged: there is no such file, it cannot be loaded, or it is no net plugin that we know.
Result<NetLibrary> loadNetLibrary(const std::string& name);

}  // namespace falcon::transport::net
