#include "collectives/direct_message.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "base/log.h"

namespace falcon::collectives {
namespace {

using transport::Mailboxes;
using transport::NodeBoard;
using MessageState = DirectMessage::State;

}  // namespace

DirectMessage::DirectMessage(DirectMember& member, const Call& call)
    : member_(&member),
      buffer_(call.operation == Operation::send ? static_cast<std::byte*>(const_cast<void*>(call.send))
                                                : static_cast<std::byte*>(call.receive)),
      bytes_(call.count * sizeOf(call.type)),
      number_(call.operation == Operation::send ? member.nextMessageTo(call.peer) : member.nextMessageFrom(call.peer)),
      peer_(call.peer),
      sends_(call.operation == Operation::send) {}

Result<MessageState> DirectMessage::progress() {
  switch (advance()) {
    case Advance::stuck:
      return MessageState::stuck;
    case Advance::advanced:
      return MessageState::advanced;
    case Advance::finished:
      return MessageState::finished;
    case Advance::failed:
      break;
  }
  return *failure_;
}

DirectMessage::Advance DirectMessage::fail(Error error) {
  failure_ = std::make_unique<const Error>(std::move(error));
  return Advance::failed;
}

DirectMessage::Advance DirectMessage::finish() {
  finished_ = true;
  return Advance::finished;
}

/// `advanced` once `holds()`; an error if the peer has left in order. What it published before it left counts: so that
/// is looked at once more, and one whose turn has not come waits for those before it.
template <class Condition>
DirectMessage::Advance DirectMessage::await(Condition holds) {
  if (holds()) return Advance::advanced;
  if (!member_->board().hasLeftInOrder(peer_)) [[likely]]
    return Advance::stuck;
  const Mailboxes& mail = *member_->mail();
  const bool isItsTurn = sends_ ? begun_ || mail.isNextTo(peer_, number_) : mail.isNextFrom(peer_, number_);
  if (!isItsTurn) return Advance::stuck;
  if (holds()) return Advance::advanced;
  return fail(log::decided(Error::remote("rank {} has left the communicator while a message {} it was expected", peer_,
                                         sends_ ? "to" : "from")));
}

DirectMessage::Advance DirectMessage::send() {
  Mailboxes& mail = *member_->mail();
  Advance state = Advance::stuck;
  if (!begun_) {
    if (const Advance free = await([&] { return mail.mayPost(peer_, number_); }); free != Advance::advanced) {
      if (watch_ && free == Advance::stuck) watch_->stuckSending(peer_, false);
      return free;
    }
    if (member_->board().hasLeftInOrder(peer_)) [[unlikely]]
      return await([] { return false; });
    post();
    begun_ = true;
    state = Advance::advanced;
  }
  if (!posted_) return finish();
  if (const Advance taken = await([&] { return mail.wasTaken(peer_, number_); }); taken != Advance::advanced) {
    if (taken == Advance::failed) return taken;
    if (watch_) watch_->stuckSending(peer_, mail.isBeingRead(peer_, number_));
    return state;
  }
  if (watch_) {
    watch_->stepBegins(-1, peer_);
    watch_->stepEnds(-1, peer_, bytes_);
  }
  return finish();
}

void DirectMessage::post() {
  Mailboxes& mail = *member_->mail();
  if (watch_) watch_->stepBegins(-1, peer_);
  if (bytes_ <= member_->wholeMessageBytes() && mail.postWhole(peer_, number_, buffer_, bytes_)) {
    if (watch_) watch_->stepEnds(-1, peer_, bytes_);
    return;
  }
  posted_ = true;
  mail.postAddress(peer_, number_, buffer_, bytes_, watch_ != nullptr);
}

DirectMessage::Advance DirectMessage::receive() {
  Mailboxes& mail = *member_->mail();
  if (!begun_) {
    if (const Advance come = await([&] { return mail.hasCome(peer_, number_); }); come != Advance::advanced) {
      if (watch_ && come == Advance::stuck) watch_->stuckReceiving(peer_);
      return come;
    }
    if (const Status opened = open(); !opened) return fail(opened.error());
    begun_ = true;
  }
  if (const Status got = takePiece(); !got) return fail(got.error());
  if (done_ < bytes_) return Advance::advanced;
  mail.take(peer_, number_);
  return finish();
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

Status DirectMessage::takePiece() {
  const std::size_t bytes = std::min(bytes_ - done_, letter_.here ? bytes_ : pieceBytes);
  if (watch_) watch_->stepBegins(peer_, -1);
  if (letter_.here) {
    std::memcpy(buffer_, letter_.here, bytes);
  } else {
    const bool last = done_ + bytes == bytes_;
    if (Status got = member_->read(peer_, buffer_ + done_, letter_.address + done_, bytes, last); !got) return got;
  }
  if (watch_) watch_->stepEnds(peer_, -1, bytes);
  done_ += bytes;
  return {};
}

void DirectMessages::add(DirectMember& member, const Call& call) {
  if (call.count > 0) messages_.emplace_back(member, call);
}

Result<MessageState> DirectMessages::progress() {
  bool moved = false, left = false;
  for (DirectMessage& message : messages_) {
    if (message.finished()) continue;
    const auto state = message.advance();
    if (state == DirectMessage::Advance::failed) return message.error();
    moved |= state != DirectMessage::Advance::stuck;
    left |= state != DirectMessage::Advance::finished;
  }
  if (!left) return MessageState::finished;
  return moved ? MessageState::advanced : MessageState::stuck;
}

NodeBoard::Awaited DirectMessages::awaited() const {
  std::optional<NodeBoard::Awaited> first;
  for (const DirectMessage& message : messages_) {
    if (message.finished()) continue;
    if (!first) first = message.awaited();
    if (message.awaited() != *first) return {};
  }
  return first.value_or(NodeBoard::Awaited{});
}

}  // namespace falcon::collectives
