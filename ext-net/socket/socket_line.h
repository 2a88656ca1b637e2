// What both ends of a TCP connection have in common.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/owned.h"
#include "base/result.h"
#include "core/net_state.h"
#include "core/network.h"
#include "socket/mover.h"

namespace falcon::net {

class SocketConnection;

/// One of a connection's messages.
struct SocketRequest final : Request {
  Result<bool> test(std::size_t& bytes) override;

  SocketConnection* connection = nullptr;
  std::byte* data = nullptr;
  std::size_t room = 0;   ///< bytes at `data`
  std::size_t size = 0;   ///< of the message; of a receive the room, until its length is known
  std::size_t given = 0;  ///< bytes that a socket has, or had
  std::size_t moved = 0;
  bool isSized = false;  ///< of a receive: its length is known
  bool isUsed = false;
  bool isDone = false;
};

/// Sockets that lead to one peer, which has proven itself, and what is on its way over them. Used by one thread at a
/// time.
class SocketConnection : public Connection {
 public:
  Result<void*> registerMemory(void* data, std::size_t bytes, int kind) final;
  void deregisterMemory(void*) final {}
  Result<Request*> start(void* data, std::size_t bytes, void* mark) final;
  Result<bool> test(SocketRequest& request, std::size_t& bytes);

 protected:
  /// @param peerName  for messages
  SocketConnection(int device, Direction direction, std::vector<FileDescriptor> sockets, std::string peerName,
                   std::unique_ptr<Mover> mover);
  ~SocketConnection() override;

  /// Moves what can be moved now.
  virtual Status move() = 0;
  /// A message was added.
  virtual void added() = 0;

  /// In the destructor of who owns memory that is being moved, before it goes.
  void stopMoving() { mover_.reset(); }
  Mover& mover() { return *mover_; }
  std::size_t socketCount() const { return sockets_.size(); }
  const std::string& peerName() const { return peerName_; }
  SocketRequest& request(std::uint64_t number) { return requests_[number % requests_.size()]; }
  /// Messages that were added; their numbers are below.
  std::uint64_t added_ = 0;
  /// The first number that is not done; what is below is.
  std::uint64_t firstOpen_ = 0;
  void done(SocketRequest& request);
  /// What a socket failed with. The first error stays.
  Error failed(int number, std::string_view doing);
  Error fail(Error error);

 private:
  Status progress();
  /// The host of the peer answers nothing any more: the kernel would go on trying for a quarter of an hour.
  Status lookForSilence(Nanoseconds now);

  const std::vector<FileDescriptor> sockets_;
  const std::string peerName_;
  std::unique_ptr<Mover> mover_;  // gone before the sockets
  ConnectionRecord record_;       // as well: it reads them
  std::array<SocketRequest, transport::net::mostRequests> requests_{};
  std::optional<Error> failure_;
  const Direction direction_;
  Nanoseconds lastLook_{0};
  std::vector<std::optional<Nanoseconds>> silentSince_;  // of each socket
  struct Heard {
    std::uint32_t segments = 0;  ///< that had come, of any kind
    Nanoseconds at{0};           ///< when the last of them was seen to have
  };
  std::vector<Heard> heard_;  // of each socket
  Nanoseconds lastHeard_{0};  // when that was looked at
  const bool isKept_;         // each end sends probes where nothing moves
};

}  // namespace falcon::net
