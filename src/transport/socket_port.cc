#include "transport/socket_port.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/log.h"
#include "transport/tcp_state.h"

namespace falcon::transport {

SocketSendPort::SocketSendPort(SharedSocket socket, std::string peerName, std::size_t chunkBytes,
                               std::shared_ptr<LinkThrottle> throttle, std::atomic<std::uint64_t>& bytesSent)
    : socket_(std::move(socket)),
      pacing_(socket_->get()),
      peerName_(std::move(peerName)),
      chunkBytes_(chunkBytes),
      frameStride_((FrameHeader::frameBytes(chunkBytes) + 63) / 64 * 64),
      throttle_(std::move(throttle)),
      bytesSent_(bytesSent),
      frames_(std::make_unique_for_overwrite<std::byte[]>(chunkSlots * frameStride_)) {}

Result<std::span<std::byte>> SocketSendPort::acquire() {
  if (failure_) return *failure_;
  if (committed_ - sent_ == chunkSlots) return std::span<std::byte>();
  return std::span(frame(committed_) + sizeof(FrameHeader), chunkBytes_);
}

void SocketSendPort::commit(std::size_t bytes) {
  append(bytes, nullptr);
  sendPending();
}

// One call for several chunks: the kernel sends long pieces in less time (1 MiB 160 to 200 us, with eight calls 245).
void SocketSendPort::commitFrom(std::span<const std::byte> data, bool more) {
  append(data.size(), data.data());
  if (!more || committed_ - sent_ == chunkSlots) sendPending();
}

void SocketSendPort::append(std::size_t bytes, const std::byte* external) {
  pacing_.sending(bytes);
  std::byte* start = frame(committed_);
  const FrameHeader header{.length = static_cast<std::uint32_t>(bytes), .sequence = committed_};
  std::memcpy(start, &header, sizeof header);
  // What was in this memory before is nobody's business on the wire.
  std::memset(start + sizeof header + (external ? 0 : bytes), 0, FrameHeader::paddingOf(bytes));
  pending_[committed_ % chunkSlots] = {FrameHeader::frameBytes(bytes), bytes, external};
  ++committed_;
}

Result<bool> SocketSendPort::progress() {
  const bool moved = sendPending();
  if (failure_) return *failure_;
  return moved;
}

WaitSource SocketSendPort::waitSource() const {
  // Out of tokens the socket is writable all the same: only time helps then.
  const short events = throttled_ ? 0 : POLLOUT;
  return {.kind = WaitSource::Kind::socket, .descriptor = socket_->get(), .events = events};
}

bool SocketSendPort::sendPending() {
  bool moved = false;
  while (!failure_ && sent_ != committed_) {
    if (!sendOnce()) break;
    moved = true;
  }
  return moved;
}

// True if the kernel took something.
bool SocketSendPort::sendOnce() {
  std::array<iovec, 3 * chunkSlots> pieces;
  std::size_t count = 0;
  std::size_t wanted = 0;
  std::size_t skip = sentOfNext_;
  const auto add = [&](const std::byte* data, std::size_t bytes) {
    const std::size_t skipped = std::min(skip, bytes);
    skip -= skipped;
    if (skipped == bytes) return;
    pieces[count++] = {const_cast<std::byte*>(data) + skipped, bytes - skipped};
    wanted += bytes - skipped;
  };
  for (std::uint64_t number = sent_; number != committed_; ++number) {
    const Pending& next = pending_[number % chunkSlots];
    const std::byte* start = frame(number);
    add(start, next.external ? sizeof(FrameHeader) : next.frameBytes);
    if (!next.external) continue;
    add(next.external, next.payload);
    add(start + sizeof(FrameHeader), FrameHeader::paddingOf(next.payload));
  }
  std::size_t granted = wanted;
  if (throttle_) [[unlikely]] {
    granted = throttle_->take(wanted);
    throttled_ = granted == 0;
    if (throttled_) return false;
    std::size_t rest = granted;
    for (std::size_t i = 0; i < count; ++i) rest -= pieces[i].iov_len = std::min(rest, pieces[i].iov_len);
  }
  msghdr message{};
  message.msg_iov = pieces.data();
  message.msg_iovlen = count;
  const auto taken = sendmsg(socket_->get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  const auto problem = errno;
  if (throttle_) throttle_->giveBack(granted - static_cast<std::size_t>(std::max<ssize_t>(taken, 0)));
  if (taken < 0) {
    if (problem != EAGAIN && problem != EINTR)
      failure_ = log::decided(Error::remote("{} cannot be sent to: {}", peerName_, strerror(problem)));
    return false;
  }
  noteSent(static_cast<std::size_t>(taken));
  return taken > 0;
}

std::optional<Nanoseconds> SocketSendPort::underWay() const {
  return transport::underWay(socket_->get());
}

void SocketSendPort::noteSent(std::size_t bytes) {
  bytesSent_.fetch_add(bytes, std::memory_order_relaxed);
  sentOfNext_ += bytes;
  while (sent_ != committed_ && sentOfNext_ >= pending_[sent_ % chunkSlots].frameBytes) {
    sentOfNext_ -= pending_[sent_ % chunkSlots].frameBytes;
    ++sent_;
  }
}

SocketReceivePort::SocketReceivePort(SharedSocket socket, std::string peerName, std::size_t chunkBytes)
    : socket_(std::move(socket)),
      peerName_(std::move(peerName)),
      chunkBytes_(chunkBytes),
      capacity_(4 * FrameHeader::frameBytes(chunkBytes)),
      buffer_(std::make_unique_for_overwrite<std::byte[]>(capacity_)) {}

Result<bool> SocketReceivePort::ready() {
  if (failure_) return *failure_;
  while (!shown_) {
    auto there = frameIsThere();
    if (there && *there) break;
    if (there) there = readMore(2 * FrameHeader::frameBytes(chunkBytes_));
    if (!there) {
      failure_ = log::decided(there.error());
      return *failure_;
    }
    if (!*there) return false;
  }
  return true;
}

Result<bool> SocketReceivePort::readyInto(std::span<std::byte> to) {
  if (to.size() < leastInPlace) return ready();
  if (failure_) return *failure_;
  if (shown_) return true;
  const auto there = inPlace_.empty() ? beginInPlace(to) : readInPlace();
  if (!there) {
    failure_ = log::decided(there.error());
    return *failure_;
  }
  // A chunk of another size is the caller's to judge.
  if (*there || !inPlace_.empty() || end_ - begin_ < sizeof(FrameHeader)) return there;
  return ready();
}

/// Reads up to the header, and from there on into place where the size is right.
Result<bool> SocketReceivePort::beginInPlace(std::span<std::byte> to) {
  for (;;) {
    const auto known = headerIsThere();
    if (!known) return known;
    if (*known) break;
    const auto more = readMore(padding_ + sizeof(FrameHeader) - (end_ - begin_));
    if (!more || !*more) return more;
  }
  if (header_.length != to.size()) return false;
  begin_ += sizeof(FrameHeader);
  placed_ = std::min(end_ - begin_, to.size());
  std::memcpy(to.data(), buffer_.get() + begin_, placed_);
  begin_ += placed_;
  inPlace_ = to;
  return readInPlace();
}

/// The rest of the payload and its padding, and no more of what follows than the next header: what comes next is put in
/// place too. A chunk is there with its padding only: a socket that is closed with bytes unread throws away what was to
/// be sent.
Result<bool> SocketReceivePort::readInPlace() {
  const std::size_t padding = FrameHeader::paddingOf(inPlace_.size());
  while (placed_ < inPlace_.size() || end_ - begin_ < padding) {
    // All that was in the buffer is in place, or is part of the padding.
    if (placed_ < inPlace_.size()) begin_ = end_;
    if (begin_ > 0) std::memmove(buffer_.get(), buffer_.get() + begin_, end_ - begin_);
    end_ -= std::exchange(begin_, 0);
    const auto rest = inPlace_.subspan(placed_);
    iovec parts[2] = {{rest.data(), rest.size()}, {buffer_.get() + end_, padding + sizeof(FrameHeader) - end_}};
    msghdr message{};
    message.msg_iov = parts;
    message.msg_iovlen = 2;
    const auto got = bytesRead(recvmsg(socket_->get(), &message, MSG_DONTWAIT));
    if (!got) return got.error();
    if (*got == 0) return false;
    placed_ += std::min(*got, rest.size());
    end_ += *got - std::min(*got, rest.size());
  }
  chunk_ = inPlace_;
  shown_ = true;
  return true;
}

void SocketReceivePort::dropPadding() {
  const std::size_t dropped = std::min(padding_, end_ - begin_);
  padding_ -= dropped;
  begin_ += dropped;
}

void SocketReceivePort::release() {
  if (inPlace_.empty())
    begin_ += FrameHeader::frameBytes(chunk_.size());
  else
    padding_ = FrameHeader::paddingOf(chunk_.size());
  inPlace_ = {};
  dropPadding();
  if (begin_ == end_) begin_ = end_ = 0;  // stay in warm memory
  chunk_ = {};
  shown_ = false;
  ++received_;
}

WaitSource SocketReceivePort::waitSource() const {
  return {.kind = WaitSource::Kind::socket, .descriptor = socket_->get(), .events = POLLIN};
}

/// The next frame's, then in header_.
Result<bool> SocketReceivePort::headerIsThere() {
  dropPadding();
  if (end_ - begin_ < sizeof(FrameHeader)) return false;
  std::memcpy(&header_, buffer_.get() + begin_, sizeof header_);
  if (header_.magic != FrameHeader::expectedMagic || header_.length > chunkBytes_ || header_.sequence != received_)
    return Error::remote("{} sent nonsense where chunk {} was expected (length {})", peerName_, received_,
                         header_.length);
  return true;
}

Result<bool> SocketReceivePort::frameIsThere() {
  const auto known = headerIsThere();
  if (!known || !*known) return known;
  if (end_ - begin_ < FrameHeader::frameBytes(header_.length)) return false;
  chunk_ = {buffer_.get() + begin_ + sizeof header_, header_.length};
  shown_ = true;
  return true;
}

// True if bytes came.
Result<bool> SocketReceivePort::readMore(std::size_t most) {
  const std::size_t largest = FrameHeader::frameBytes(chunkBytes_);
  if (begin_ > 0 && begin_ + largest > capacity_) {
    std::memmove(buffer_.get(), buffer_.get() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  const auto got =
      bytesRead(recv(socket_->get(), buffer_.get() + end_, std::min(capacity_ - end_, most), MSG_DONTWAIT));
  if (!got) return got.error();
  end_ += *got;
  return *got > 0;
}

/// What a read gave; 0: nothing for now.
Result<std::size_t> SocketReceivePort::bytesRead(ssize_t got) const {
  if (got > 0) return static_cast<std::size_t>(got);
  if (got == 0) return Error::remote("{} closed its connection while bytes from it were expected", peerName_);
  if (errno == EAGAIN || errno == EINTR) return std::size_t{0};
  return Error::remote("the connection from {} broke: {}", peerName_, strerror(errno));
}

}  // namespace falcon::transport
