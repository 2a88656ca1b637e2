#include "collectives/direct_member.h"

#include <algorithm>
#include <limits>

#include "base/log.h"

namespace falcon::collectives {
namespace {

// Ranks with cores of their own read 32 KiB and more, and two of them 16 KiB and more, faster (3 us) than they copy it
// in and out. Where they share cores, who copies need not wait for its readers, and a switch takes longer than to copy
// (AllReduce of 256 KiB among 8 ranks on 2 cores: 250 us instead of 800).
std::size_t inlineBytesFor(const transport::NodeBoard& board, bool readsMemory, int ranks, bool coresSuffice) {
  if (!coresSuffice || !readsMemory) return board.payloadBytes();
  return std::min<std::size_t>(board.payloadBytes(), ranks == 2 ? 16 << 10 : 32 << 10);
}

// A part must be worth its turn.
std::size_t partBytesFor(std::size_t inlineBytes, bool coresSuffice) {
  constexpr std::size_t least = 64 << 10;
  return coresSuffice || inlineBytes < least ? std::numeric_limits<std::size_t>::max() : inlineBytes;
}

// The same for messages, with cores faster still: a read of 4 KiB takes as long as two copies (1.3 us).
std::size_t wholeMessageBytesFor(const transport::Mailboxes* mail, int ranks, bool coresSuffice) {
  if (!mail) return 0;
  if (!coresSuffice) return mail->roomBytes();
  return std::min<std::size_t>(mail->roomBytes(), ranks == 2 ? 4 << 10 : 16 << 10);
}

}  // namespace

DirectMember::DirectMember(std::unique_ptr<transport::NodeBoard> board, std::vector<transport::PeerMemory> memories,
                           int ranks, bool coresSuffice)
    : board_(std::move(board)),
      memories_(std::move(memories)),
      coresSuffice_(coresSuffice),
      inlineBytes_(inlineBytesFor(*board_, readsMemory(), ranks, coresSuffice)),
      partBytes_(partBytesFor(inlineBytes_, coresSuffice)),
      // What does not fit into a box is read from memory.
      mail_(readsMemory() ? board_->mail() : nullptr),
      wholeMessageBytes_(wholeMessageBytesFor(mail_, ranks, coresSuffice)),
      messagesTo_(ranks),
      messagesFrom_(ranks) {}

Status DirectMember::read(Rank peer, std::byte* to, std::uint64_t address, std::size_t bytes, bool last) const {
  const Status got = memories_[peer].read(to, address, bytes, last);
  // A rank that gave up has its buffers back, and may have written to them before the read.
  const bool stands = !last || !board_->hasGivenUp(peer);
  if (got && stands) return {};
  if (got) return log::decided(Error::remote("rank {} gave up while its memory was read", peer));
  if (got.error().code() == ErrorCode::remote)
    return log::decided(Error::remote("rank {} died: {}", peer, got.error().message()));
  return log::decided(Error::remote("the memory of rank {} {} (NCCL_P2P_DISABLE=1 does without reading it)", peer,
                                    got.error().message()));
}

Status DirectMember::write(Rank peer, std::uint64_t address, const std::byte* from, std::size_t bytes) const {
  const Status put = memories_[peer].write(from, address, bytes);
  if (put) return {};
  if (put.error().code() == ErrorCode::remote)
    return log::decided(Error::remote("rank {} died: {}", peer, put.error().message()));
  return log::decided(Error::remote("the memory of rank {} {}", peer, put.error().message()));
}

// The kernel's copy (rep movsb) is four times slower on Zen 3 where the destination's place in its page is some bytes
// beyond the source's: large buffers begin with a page, and what is allocated 16 bytes behind.
std::byte* DirectMember::scratch(int piece, std::uint64_t source) {
  constexpr std::size_t lineBytes = 64, roomBytes = pieceBytes + lineBytes;
  if (!scratch_) {
    std::size_t bytes = 2 * roomBytes + lineBytes;
    scratchMemory_ = std::make_unique<std::byte[]>(bytes);
    void* begin = scratchMemory_.get();
    scratch_ = static_cast<std::byte*>(std::align(lineBytes, 2 * roomBytes, begin, bytes));
  }
  return scratch_ + static_cast<std::size_t>(piece) * roomBytes + source % lineBytes;
}

std::byte* DirectMember::aside(std::size_t bytes) {
  if (aside_.size() < bytes) aside_.resize(bytes);
  return aside_.data();
}

}  // namespace falcon::collectives
