#include "collectives/direct_message.h"

#include <algorithm>
#include <cstring>

#include "base/log.h"

namespace falcon::collectives {
namespace {

using transport::Mailboxes;
using transport::NodeBoard;
using State = DirectMessage::State;

// Read in one go: a read has its price, and others wait meanwhile. 256 KiB cost 3 % more.
constexpr std::size_t pieceBytes = 512 << 10;

}  // namespace

DirectMessage::DirectMessage(DirectMember& member, const Call& call)
    : member_(&member),
      buffer_(call.operation == Operation::send ? static_cast<std::byte*>(const_cast<void*>(call.send))
                                                : static_cast<std::byte*>(call.receive)),
      bytes_(call.count * sizeOf(call.type)),
      number_(call.operation == Operation::send ? member.nextMessageTo(call.peer) : member.nextMessageFrom(call.peer)),
      peer_(call.peer),
      sends_(call.operation == Operation::send) {}

/// True once `holds()`; an error if the peer has left in order. What it published before it left counts: so that is
/// looked at once more.
template <class Condition>
Result<bool> DirectMessage::await(Condition holds) const {
  if (holds()) return true;
  if (!member_->board().hasLeftInOrder(peer_)) [[likely]]
    return false;
  if (holds()) return true;
  return log::decided(Error::remote("rank {} has left the communicator while a message {} it was expected", peer_,
                                    sends_ ? "to" : "from"));
}

Result<State> DirectMessage::send() {
  Mailboxes& mail = *member_->mail();
  State state = State::stuck;
  if (!begun_) {
    const auto free = await([&] { return mail.mayPost(peer_, number_); });
    if (!free) return free.error();
    if (!*free) {
      if (watch_) watch_->stuckSending(peer_, false);
      return State::stuck;
    }
    if (member_->board().hasLeftInOrder(peer_)) [[unlikely]]
      return await([] { return false; }).error();
    post();
    begun_ = true;
    state = State::advanced;
  }
  if (!posted_) return State::finished;
  const auto taken = await([&] { return mail.wasTaken(peer_, number_); });
  if (!taken) return taken.error();
  if (!*taken) {
    if (watch_) watch_->stuckSending(peer_, mail.isBeingRead(peer_, number_));
    return state;
  }
  if (watch_) {
    watch_->stepBegins();
    watch_->stepEnds(-1, peer_, bytes_);
  }
  return State::finished;
}

void DirectMessage::post() {
  Mailboxes& mail = *member_->mail();
  if (watch_) watch_->stepBegins();
  if (bytes_ <= member_->wholeMessageBytes() && mail.postWhole(peer_, number_, buffer_, bytes_)) {
    if (watch_) watch_->stepEnds(-1, peer_, bytes_);
    return;
  }
  posted_ = true;
  mail.postAddress(peer_, number_, buffer_, bytes_, watch_ != nullptr);
}

Result<State> DirectMessage::receive() {
  Mailboxes& mail = *member_->mail();
  if (!begun_) {
    const auto come = await([&] { return mail.hasCome(peer_, number_); });
    if (!come) return come.error();
    if (!*come) {
      if (watch_) watch_->stuckReceiving(peer_);
      return State::stuck;
    }
    if (const Status opened = open(); !opened) return opened.error();
    begun_ = true;
  }
  const auto got = takePiece();
  if (!got) return got.error();
  done_ += *got;
  if (done_ < bytes_) return State::advanced;
  mail.take(peer_, number_);
  return State::finished;
}

/// Looks what has come.
Status DirectMessage::open() {
  Mailboxes& mail = *member_->mail();
  if (!mail.read(peer_, number_, letter_))
    return log::decided(Error::remote("rank {} wrote nonsense into the memory shared with it", peer_));
  if (letter_.bytes != bytes_) return log::decided(chunkMisfit(peer_, letter_.bytes, bytes_));
  if (letter_.timed) mail.begin(peer_, number_);
  return {};
}

/// Bytes that it moved.
Result<std::size_t> DirectMessage::takePiece() {
  const std::size_t bytes = std::min(bytes_ - done_, letter_.here ? bytes_ : pieceBytes);
  if (watch_) watch_->stepBegins();
  if (letter_.here) {
    std::memcpy(buffer_, letter_.here, bytes);
  } else {
    const bool last = done_ + bytes == bytes_;
    if (const Status got = member_->read(peer_, buffer_ + done_, letter_.address + done_, bytes, last); !got)
      return got.error();
  }
  if (watch_) watch_->stepEnds(peer_, -1, bytes);
  return bytes;
}

void DirectMessages::add(DirectMember& member, const Call& call) {
  if (call.count > 0) messages_.emplace_back(member, call);
}

Result<State> DirectMessages::progress() {
  bool moved = false;
  for (std::size_t i = 0; i < messages_.size();) {
    const auto state = messages_[i].progress();
    if (!state) return state.error();
    moved |= *state != State::stuck;
    if (*state == State::finished)
      messages_.erase(messages_.begin() + static_cast<std::ptrdiff_t>(i));
    else
      ++i;
  }
  if (messages_.empty()) return State::finished;
  return moved ? State::advanced : State::stuck;
}

NodeBoard::Awaited DirectMessages::awaited() const {
  const auto first = messages_.front().awaited();
  const bool alike = std::all_of(messages_.begin(), messages_.end(),
                                 [&](const DirectMessage& message) { return message.awaited() == first; });
  return alike ? first : NodeBoard::Awaited{};
}

}  // namespace falcon::collectives
