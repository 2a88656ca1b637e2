// A connection that is being made, by who sends: all of its sockets.
#pragma once

#include <optional>
#include <vector>

#include "base/owned.h"
#include "base/result.h"
#include "core/dialling_term.h"
#include "core/tcp_dialling.h"

namespace falcon::net {

/// Used by one thread at a time. Never blocks.
class Dialling : public DiallingTerm {
 public:
  /// @param from     this end's address; its port is ignored
  /// @param sockets  how many the connection is to have
  Dialling(const ListenerHandle& handle, const SocketAddress& from, std::size_t sockets)
      : DiallingTerm(handle), from_(from), sockets_(sockets) {}

  /// The connection's sockets once all have been let in; nothing: not yet. Errors (remote): nobody of ours listens
  /// there, or not within NCCL_FALCON_INIT_TIMEOUT; (system): no sockets can be had.
  Result<std::optional<std::vector<FileDescriptor>>> progress();

 private:
  Status begin();

  const SocketAddress from_;
  const std::size_t sockets_;
  std::vector<TcpDialling> attempts_;  // empty: not begun yet
};

}  // namespace falcon::net
