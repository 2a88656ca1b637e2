// The TCP connection over which two ends have met, kept for what the transport does not tell: that the peer is gone,
// though nothing is being sent to it.
#pragma once

#include <optional>

#include "base/owned.h"

namespace falcon::net {

class Lifeline {
 public:
  /// @param socket  non-blocking
  explicit Lifeline(FileDescriptor socket) : socket_(std::move(socket)) {}

  /// Where nothing more is to come over it. Nothing: the peer lives, as far as its kernel knows. 0: it has hung up.
  /// Else an error number; a host that falls silent is ETIMEDOUT after NCCL_FALCON_DEATH_TIMEOUT.
  std::optional<int> problem() const;
  /// For who says something over it.
  int socket() const { return socket_.get(); }

 private:
  FileDescriptor socket_;
};

}  // namespace falcon::net
