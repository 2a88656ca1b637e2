// Moves bytes over the sockets of one connection without ever blocking: by trying (polling_mover.cc), or by the
// kernel's rings (ring_mover.cc).
#pragma once

#include <sys/uio.h>

#include <memory>
#include <optional>
#include <span>

#include "base/owned.h"
#include "base/result.h"

namespace falcon::net {

enum class Direction { send, receive };

/// What became of a move.
struct Moved {
  int socket = 0;     ///< its place in the connection
  ssize_t bytes = 0;  ///< below 0: an error number, negative. 0 of a receive: the peer has hung up
};

/// Used by one thread at a time. The sockets stay the caller's.
class Mover {
 public:
  virtual ~Mover() = default;
  /// Moves as much of `parts` as goes at once, one byte at least. One move at a time on each socket. The parts' memory
  /// is used until next() has told of this move, or the mover is gone; `parts` itself only now.
  virtual void begin(int socket, std::span<const iovec> parts) = 0;
  /// A move that is over; nothing: none for now. Never blocks.
  virtual std::optional<Moved> next() = 0;
};

/// Two parts are the most that a move has.
inline constexpr std::size_t mostParts = 2;
/// Moves in one call of a sender or receiver: other connections wait for the same thread.
inline constexpr int mostMoves = 64;

/// Tries a move when it is begun and then whenever it is asked; with several sockets the kernel (epoll) says which are
/// worth it. Error (system): no descriptor can be had.
Result<std::unique_ptr<Mover>> pollingMover(std::span<const FileDescriptor> sockets, Direction direction);

/// Over io_uring. Nothing: the kernel has none, or forbids it, as in most containers.
std::unique_ptr<Mover> ringMover(std::span<const FileDescriptor> sockets, Direction direction);

/// As NCCL_FALCON_NET_IO says: over io_uring where that can be had, else by trying. Error: of pollingMover().
Result<std::unique_ptr<Mover>> makeMover(std::span<const FileDescriptor> sockets, Direction direction);

}  // namespace falcon::net
