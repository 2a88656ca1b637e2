#include <atomic>

#include "base/log.h"
#include "base/net_parameters.h"
#include "socket/mover.h"

namespace falcon::net {

Result<std::unique_ptr<Mover>> makeMover(std::span<const FileDescriptor> sockets, Direction direction) {
  if (parameters::netIo.value() == parameters::netIoByRing) {
    if (auto ring = ringMover(sockets, direction)) return ring;
    static std::atomic<bool> said{false};
    if (!said.exchange(true))
      log::info("{}=io_uring cannot be had here (no kernel of at least 5.6, or it is forbidden): epoll is used",
                parameters::netIo.name());
  }
  return pollingMover(sockets, direction);
}

}  // namespace falcon::net
