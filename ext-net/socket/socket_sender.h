// The sending end of a TCP connection.
#pragma once

#include "socket/frame.h"
#include "socket/socket_line.h"

namespace falcon::net {

/// A message goes as one piece over a single socket; over several, in pieces of at least NCCL_FALCON_NET_PIECE bytes,
/// each on the first socket that has room, so that a slow one holds up none.
class SocketSender final : public SocketConnection {
 public:
  static Result<std::unique_ptr<Connection>> make(int device, std::vector<FileDescriptor> sockets,
                                                  std::string peerName);
  SocketSender(int device, std::vector<FileDescriptor> sockets, std::string peerName, std::unique_ptr<Mover> mover);
  ~SocketSender() override { stopMoving(); }

 private:
  /// A socket and the piece that it has.
  struct Lane {
    SocketRequest* request = nullptr;  // none: idle
    Frame frame{};
    std::size_t sent = 0;  // of the frame and what follows
  };

  Status move() override;
  void added() override {}
  /// Gives idle sockets the next pieces.
  void feed();
  void begin(std::size_t place);

  const std::size_t piece_;  // bytes; one socket has no pieces
  std::vector<Lane> lanes_;
  std::size_t idle_;
  std::uint64_t nextToGive_ = 0;  // the first message of which no socket has the end yet
};

}  // namespace falcon::net
