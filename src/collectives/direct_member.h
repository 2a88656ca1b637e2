// One rank's part of a communicator whose ranks all live on one node: the board they share, and access to each other's
// memory.
#pragma once

#include <memory>
#include <vector>

#include "transport/node_board.h"
#include "transport/peer_memory.h"

namespace falcon::collectives {

/// Used by the thread that runs the rank's calls.
class DirectMember {
 public:
  /// `memories[r]` reads rank r; empty: only messages that fit into the board go by it. `coresSuffice`: each rank has a
  /// core to itself; the same on all ranks.
  DirectMember(std::unique_ptr<transport::NodeBoard> board, std::vector<transport::PeerMemory> memories, int ranks,
               bool coresSuffice);

  /// Bytes that are read and reduced in one go: many enough for the price of a read (0.4 us), few enough that two such
  /// pieces stay in a core's L2 cache beside other ranks'. 32 and 128 KiB cost a tenth more.
  static constexpr std::size_t pieceBytes = 64 << 10;

  transport::NodeBoard& board() { return *board_; }
  /// Messages up to this size are put into the board.
  std::size_t inlineBytes() const { return inlineBytes_; }
  /// Larger calls of algorithms that allow it are run part by part, each by the board.
  std::size_t partBytes() const { return partBytes_; }
  bool readsMemory() const { return !memories_.empty(); }
  /// Copies from the memory of another rank what it has published for the present operation or message. `last`: nothing
  /// more is read for it. Errors: remote.
  Status read(Rank peer, std::byte* to, std::uint64_t address, std::size_t bytes, bool last) const;

  /// Writes into the memory of another rank, or of this one. Errors: remote.
  Status write(Rank peer, std::uint64_t address, const std::byte* from, std::size_t bytes) const;
  /// For one-sided messages; null: there are none. The same on all ranks.
  transport::SignalBoard* signals() { return readsMemory() ? board_->signals() : nullptr; }

  /// Where messages between two ranks go; null: through connections. The same on all ranks.
  transport::Mailboxes* mail() { return mail_; }
  /// Messages up to this size are copied, if there is room, so that the sender need not wait.
  std::size_t wholeMessageBytes() const { return wholeMessageBytes_; }
  std::uint64_t nextMessageTo(Rank peer) { return ++messagesTo_[peer]; }
  std::uint64_t nextMessageFrom(Rank peer) { return ++messagesFrom_[peer]; }

  /// Room for two pieces, kept from call to call: fresh pages would cost more than what is done with them.
  /// @param source  where the piece will be copied from, whosever address; it comes to lie as that does in a cache line
  std::byte* scratch(int piece, std::uint64_t source = 0);
  /// The same for a result that must wait for its place.
  std::byte* aside(std::size_t bytes);
  std::uint64_t nextOperation() { return ++operations_; }
  /// Whether each rank has a core: only then it is worth to wait without yielding.
  bool coresSuffice() const { return coresSuffice_; }

 private:
  const std::unique_ptr<transport::NodeBoard> board_;
  std::vector<transport::PeerMemory> memories_;
  const bool coresSuffice_;
  const std::size_t inlineBytes_, partBytes_;
  transport::Mailboxes* const mail_;
  const std::size_t wholeMessageBytes_;
  std::unique_ptr<std::byte[]> scratchMemory_;
  std::byte* scratch_ = nullptr;  ///< where a line begins in it
  std::vector<std::byte> aside_;
  std::uint64_t operations_ = 0;
  std::vector<std::uint64_t> messagesTo_, messagesFrom_;
};

}  // namespace falcon::collectives
