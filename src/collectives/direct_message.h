// Messages between ranks of one node, without connections: short ones go through the boxes of the board, long ones are
// read from the sender's memory.
#pragma once

#include <memory>
#include <vector>

#include "base/call.h"
#include "collectives/direct_member.h"
#include "collectives/step_runner.h"

namespace falcon::collectives {

/// One end of one message, which runs without ever blocking. Used by one thread. Those to one peer are made in their
/// order, and those from one.
class DirectMessage {
 public:
  using State = StepRunner::State;
  /// Read in one go: a read has its price, and others wait meanwhile. 512 KiB cost 3 to 10 % more.
  static constexpr std::size_t pieceBytes = 4 << 20;

  /// `call`: send or receive, with another rank, of more than nothing.
  DirectMessage(DirectMember& member, const Call& call);

  /// Only before the first progress().
  void watch(TransferWatch watch) { watch_ = std::make_unique<TransferWatch>(std::move(watch)); }

  /// Does what can be done now, but only so much that others get their turn. `finished` once this rank's buffer is its
  /// own again. Errors: remote, invalidUsage where the sizes at both ends differ.
  Result<State> progress();
  /// After `stuck`: what must come first.
  transport::NodeBoard::Awaited awaited() const { return transport::NodeBoard::awaitedMessage(peer_); }

  /// Null where nothing was measured.
  TransferWatch* transfers() const { return watch_.get(); }

  /// progress() without a Result, which takes as long as the rest of a short message.
  enum class Advance : std::uint8_t { stuck, advanced, finished, failed };
  Advance advance() { return sends_ ? send() : receive(); }
  bool finished() const { return finished_; }
  /// Of one that has failed.
  const Error& error() const { return *failure_; }

 private:
  Advance fail(Error error);
  Advance finish();
  Advance send();
  void post();
  Advance receive();
  Status open();
  Status takePiece();
  template <class Condition>
  Advance await(Condition holds);

  DirectMember* member_;
  std::byte* buffer_;
  std::size_t bytes_;
  std::size_t done_ = 0;  // of a message that is read
  std::uint64_t number_;
  Rank peer_;
  bool sends_;
  bool begun_ = false;   // posted, or come
  bool posted_ = false;  // only its address was
  bool finished_ = false;
  transport::Mailboxes::Letter letter_;
  std::unique_ptr<const Error> failure_;
  std::unique_ptr<TransferWatch> watch_;
};

/// Messages of one communicator that run side by side: the short way of sends and receives inside a node. Kept from
/// call to call: it allocates nothing once it has run as many before.
class DirectMessages {
 public:
  void begin() { messages_.clear(); }
  void add(DirectMember& member, const Call& call);

  Result<DirectMessage::State> progress();
  /// After `stuck`: what must come first, or something of anyone.
  transport::NodeBoard::Awaited awaited() const;

 private:
  std::vector<DirectMessage> messages_;
};

}  // namespace falcon::collectives
