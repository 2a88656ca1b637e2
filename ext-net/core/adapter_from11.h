// What the adapters of versions 11 and 12 do alike: a context for each communicator, of which we need none: there is
// one network a process.
#pragma once

#include "core/adapter.h"
#include "transport/plugin/net_v11.h"

namespace falcon::net::adapter {

/// Nothing belongs to a communicator, but NCCL wants a context back that is not null.
inline std::byte noContext{};

inline ResultCode init(void** context, std::uint64_t, CommConfig*, Logger logger, ProfilerCallback) {
  if (!context) return static_cast<ResultCode>(ErrorCode::invalidArgument);
  const ResultCode result = begin(logger);
  if (result == ok) *context = &noContext;
  return result;
}

inline ResultCode finalize(void*) {
  return ok;
}

inline ResultCode listenOn(void*, int device, void* handle, void** listenComm) {
  return listen(device, handle, listenComm);
}

inline ResultCode connectTo(void*, int device, void* handle, void** sendComm, DeviceHandle**) {
  return connect(device, handle, sendComm);
}

/// What is planned for a communicator's connections changes nothing.
inline ResultCode setAttributes(void*, transport::net::Attributes*) {
  return ok;
}

/// The members of both versions' structs, but for the one that differs in type.
template <class Plugin>
constexpr Plugin pluginFrom11(decltype(Plugin::getProperties) properties) {
  Plugin plugin = pluginOf<Plugin>(init, properties, listenOn, connectTo, isendFrom10, irecvFrom10);
  plugin.finalize = finalize;
  plugin.setNetAttr = setAttributes;
  return plugin;
}

}  // namespace falcon::net::adapter
