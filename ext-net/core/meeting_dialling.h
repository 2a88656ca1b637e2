// A connection that is being made by who sends, where the ends must know something of each other first (loose_end.h).
#pragma once

#include <memory>
#include <optional>

#include "core/dialling_book.h"
#include "core/dialling_term.h"
#include "core/loose_end.h"
#include "core/tcp_dialling.h"

namespace falcon::net {

/// Used by one thread at a time. Never blocks.
class MeetingDialling : public DiallingTerm {
 public:
  /// @param from  this end's address for TCP; @param make  makes the sending end, when it is asked for the first time
  MeetingDialling(const ListenerHandle& handle, const SocketAddress& from, MakeLooseEnd make)
      : DiallingTerm(handle), from_(from), make_(std::move(make)) {}

  /// Null: not yet. Errors (remote): nobody of ours listens there, or not within NCCL_FALCON_INIT_TIMEOUT; and
  /// LooseEnd's.
  Result<std::unique_ptr<Connection>> progress();

 private:
  Status begin();
  /// Whether it has come; then the end is connected.
  Result<bool> readAnswer();
  /// Null: the end has not settled yet.
  Result<std::unique_ptr<Connection>> finish();
  /// That of a connection which cannot be had.
  Error unreachable(std::string_view why) const;

  const SocketAddress from_;
  const MakeLooseEnd make_;
  std::unique_ptr<LooseEnd> end_;
  std::optional<TcpDialling> dialling_;
  FileDescriptor socket_;
  transport::ExactReader answer_;
  bool isAnswered_ = false;
};

/// Network::connect() of a network whose ends meet so.
Result<std::unique_ptr<Connection>> meet(DiallingBook<MeetingDialling>& book, Handle handle, const SocketAddress& from,
                                         const MakeLooseEnd& make);

}  // namespace falcon::net
