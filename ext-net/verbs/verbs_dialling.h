// A connection over verbs that is being made, by who sends.
#pragma once

#include <memory>
#include <optional>

#include "core/dialling_term.h"
#include "core/network.h"
#include "core/tcp_dialling.h"
#include "verbs/queue_pair.h"

namespace falcon::net {

/// Makes a queue pair, goes to the listener over TCP, is proven, and tells of it (end_facts.h); the listener answers
/// with its own. Used by one thread at a time. Never blocks.
class VerbsDialling : public DiallingTerm {
 public:
  /// @param device  its number; @param from  this end's address for TCP
  VerbsDialling(VerbsPort& port, int device, const ListenerHandle& handle, const SocketAddress& from)
      : DiallingTerm(handle), port_(port), device_(device), from_(from) {}

  /// Null: not yet. Errors (remote): nobody of ours listens there, or not within NCCL_FALCON_INIT_TIMEOUT; (system):
  /// the device refuses; (invalidUsage): the ends do not fit together.
  Result<std::unique_ptr<Connection>> progress();

 private:
  Status begin();
  /// Null: it has not come yet.
  Result<std::unique_ptr<Connection>> readAnswer();

  VerbsPort& port_;
  const int device_;
  const SocketAddress from_;
  std::unique_ptr<QueuePair> pair_;
  std::optional<TcpDialling> dialling_;
  FileDescriptor socket_;
  transport::ExactReader answer_;
};

}  // namespace falcon::net
