// What speaks against a plugin. Pure.
#pragma once

#include <optional>
#include <string>

#include "transport/plugin/net_calls.h"

namespace falcon::transport::net {

/// Members that it must have; nothing where all are there.
std::optional<std::string> objectionTo(const NetCalls& calls);

/// What a device says of itself that cannot be, or is of no use to the host engine.
/// @param messageBytes  how long a message is to be possible
std::optional<std::string> objectionTo(const DeviceProperties& device, int number, std::size_t messageBytes);

}  // namespace falcon::transport::net
