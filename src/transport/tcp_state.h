// What the kernel knows of a TCP connection.
#pragma once

#include <optional>

#include "base/clock.h"

namespace falcon::transport {

/// How long bytes of this socket have been on their way so far: sent, not acknowledged yet, and the receiver had room
/// for more. Nothing where the kernel does not count it (before Linux 4.10, or no TCP). A system call.
std::optional<Nanoseconds> underWay(int socket);

}  // namespace falcon::transport
