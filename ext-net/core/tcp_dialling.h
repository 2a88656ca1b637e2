// A TCP connection to a listener of ours (doorman.h) that is being made, and proven.
#pragma once

#include <optional>
#include <string>

#include "base/clock.h"
#include "base/owned.h"
#include "base/result.h"
#include "core/listener_handle.h"
#include "transport/handshake.h"

namespace falcon::net {

/// Used by one thread at a time. Never blocks.
class TcpDialling {
 public:
  /// @param from     this end's address; its port is ignored
  /// @param payload  what the listener learns once it believes us
  TcpDialling(const ListenerHandle& handle, const SocketAddress& from, std::string payload);

  /// Goes on as far as it can now. Errors (remote): nobody of ours listens there; (system): no socket can be had.
  Status progress();
  /// It has been let in: take() has it.
  bool isThrough() const { return stage_ == Stage::through; }
  FileDescriptor take() { return std::move(socket_); }

 private:
  enum class Stage { none, connecting, greeting, through };

  Status begin();
  Status onConnected();
  Status onAnswer();
  Error unreachable(int number) const;

  ListenerHandle handle_;
  SocketAddress from_;
  std::string payload_;
  Stage stage_ = Stage::none;
  FileDescriptor socket_;
  std::optional<transport::Greeting> greeting_;
  Nanoseconds notBefore_{0};
};

}  // namespace falcon::net
