// What all versions of NCCL's net plugin interface have in common, written from its documented facts. Plain C types:
// plugins that are built here include these headers too.
#pragma once

#include <cstddef>
#include <cstdint>

#include "plugin/plugin_abi.h"

namespace falcon::transport::net {

using plugin::internalError;
using plugin::Logger;
using plugin::LogLevel;
using plugin::ResultCode;
using plugin::success;

/// A handle names a listener to the one who connects.
inline constexpr std::size_t handleBytes = 128;
/// Requests that a connection carries at a time.
inline constexpr int mostRequests = 32;
/// Kinds of memory; a mask in a device's properties, one of them when memory is registered.
inline constexpr int hostMemory = 1;
/// The kind of a device whose data the host moves; the others hand work to the GPU.
inline constexpr int hostDevice = 0;
/// A message that is longer than a plugin of an interface before version 9 can say.
inline constexpr std::size_t longestMessageBefore9 = std::size_t{1} << 30;
/// Traffic class, rail or plane that nobody has chosen.
inline constexpr int undefined = -1;

/// How a plugin from version 10 on tells NCCL's profiler of events of its own.
using ProfilerCallback = ResultCode (*)(void** event, int type, void* parent, std::int64_t plugin, void* data);

/// A connection whose data the GPU moves. The host engine asks for none.
struct DeviceHandle {
  int type;
  int version;
  void* handle;
  std::size_t size;
  int needsProgress;
};

struct CommConfig {
  int trafficClass;
};

}  // namespace falcon::transport::net
