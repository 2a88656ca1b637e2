// What a listener's handle says to who connects.
#pragma once

#include <cstdint>

#include "base/socket_address.h"
#include "core/network.h"
#include "transport/reactor.h"

namespace falcon::net {

/// Comes from outside, so nothing in it is believed unless its sum is right; and what the sum protects is known to the
/// job only.
struct ListenerHandle {
  SocketAddress address;       ///< where it listens
  std::uint64_t listener = 0;  ///< its number
  transport::Secret secret{};  ///< that both ends of a connection prove to know; random, of this listener only
  std::uint64_t dialling = 0;  ///< which of this process's dialled connections it is about; 0: none yet. Not in the sum
};

void write(const ListenerHandle& from, Handle to);
/// Error (invalidArgument): that is no handle of ours.
Result<ListenerHandle> readHandle(Handle from);
/// Notes in the handle what dialling it is about; and what was noted.
void noteDialling(Handle handle, std::uint64_t dialling);
std::uint64_t diallingIn(Handle handle);

}  // namespace falcon::net
