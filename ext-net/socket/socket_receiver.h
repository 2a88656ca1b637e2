// The receiving end of a TCP connection.
#pragma once

#include "socket/frame.h"
#include "socket/socket_line.h"

namespace falcon::net {

/// Reads only what somebody has asked for: the peer waits when nobody does. What comes is believed as far as it fits: a
/// piece outside of its message, a message longer than its buffer, or anything that is no piece ends the connection.
class SocketReceiver final : public SocketConnection {
 public:
  static Result<std::unique_ptr<Connection>> make(int device, std::vector<FileDescriptor> sockets,
                                                  std::string peerName);
  SocketReceiver(int device, std::vector<FileDescriptor> sockets, std::string peerName, std::unique_ptr<Mover> mover);
  ~SocketReceiver() override { stopMoving(); }

 private:
  /// What is read beyond a piece's end: the next frames, and short pieces whole, so that one call of the kernel is
  /// enough for them.
  static constexpr std::size_t stashBytes = 4096;

  struct Lane {
    SocketRequest* request = nullptr;  // whose piece is being read
    std::size_t at = 0;                // where the next byte goes in its message
    std::size_t left = 0;              // bytes of the piece that have not come
    std::array<std::byte, stashBytes> stash;
    std::size_t from = 0, to = 0;  // bytes of the stash that wait
    bool isReading = false;
    bool isParked = false;  // the piece in front is of a message that nobody has asked for yet
    bool isOver = false;    // the peer has hung up
  };

  Status move() override;
  void added() override;
  void begin(std::size_t place);
  Status take(Lane& lane, std::size_t bytes);
  /// Goes through what waits in the stash.
  Status parse(Lane& lane);
  Status open(Lane& lane, const Frame& frame);
  void close(Lane& lane);
  Status hungUp(Lane& lane);

  std::vector<std::unique_ptr<Lane>> lanes_;
  std::optional<Nanoseconds> overSince_;  // when the first socket ended
};

}  // namespace falcon::net
