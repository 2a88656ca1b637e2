// A connection that is being made, by who sends.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/owned.h"
#include "base/result.h"
#include "core/listener_handle.h"
#include "transport/handshake.h"

namespace falcon::net {

/// Used by one thread at a time. Never blocks.
class Dialling {
 public:
  /// @param from     this end's address; its port is ignored
  /// @param sockets  how many the connection is to have
  Dialling(const ListenerHandle& handle, const SocketAddress& from, std::size_t sockets);

  /// The connection's sockets once all have been let in; nothing: not yet. Errors (remote): nobody of ours listens
  /// there, or not within NCCL_FALCON_INIT_TIMEOUT; (system): no sockets can be had.
  Result<std::optional<std::vector<FileDescriptor>>> progress();
  bool isAbout(const ListenerHandle& handle) const;
  bool isOverdue(Nanoseconds now) const { return now - since_ > limit_; }

 private:
  enum class Stage { none, connecting, greeting, through };
  struct Attempt {
    Stage stage = Stage::none;
    FileDescriptor socket{};
    std::optional<transport::Greeting> greeting{};
    Nanoseconds notBefore{0};
  };

  /// Goes on as far as it can now.
  Status advance(Attempt& attempt, std::size_t place);
  Status begin(Attempt& attempt);
  Status onConnected(Attempt& attempt, std::size_t place);
  Status onAnswer(Attempt& attempt);
  Error unreachable(int number) const;

  const ListenerHandle handle_;
  const SocketAddress from_;
  const Nanoseconds since_;
  const Nanoseconds limit_;
  std::uint64_t connection_ = 0;  // random; 0: not made yet
  std::vector<Attempt> attempts_;
};

}  // namespace falcon::net
