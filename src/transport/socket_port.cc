#include "transport/socket_port.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/log.h"

namespace falcon::transport {

SocketSendPort::SocketSendPort(FileDescriptor socket, std::string peerName, std::size_t chunkBytes,
                               std::shared_ptr<LinkThrottle> throttle, std::atomic<std::uint64_t>& bytesSent)
    : socket_(std::move(socket)),
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
  std::byte* start = frame(committed_);
  const FrameHeader header{.length = static_cast<std::uint32_t>(bytes), .sequence = committed_};
  std::memcpy(start, &header, sizeof header);
  const std::size_t total = FrameHeader::frameBytes(bytes);
  // What was in this memory before is nobody's business on the wire.
  std::memset(start + sizeof header + bytes, 0, total - sizeof header - bytes);
  frameBytes_[committed_ % chunkSlots] = total;
  ++committed_;
  sendPending();
}

Result<bool> SocketSendPort::progress() {
  const bool moved = sendPending();
  if (failure_) return *failure_;
  return moved;
}

WaitSource SocketSendPort::waitSource() const {
  // Out of tokens the socket is writable all the same: only time helps then.
  const short events = throttled_ ? 0 : POLLOUT;
  return {.kind = WaitSource::Kind::socket, .descriptor = socket_.get(), .events = events};
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
  std::array<iovec, chunkSlots> pieces;
  std::size_t count = 0;
  std::size_t wanted = 0;
  for (std::uint64_t number = sent_; number != committed_; ++number) {
    const std::size_t skip = number == sent_ ? sentOfNext_ : 0;
    const std::size_t length = frameBytes_[number % chunkSlots] - skip;
    pieces[count++] = {frame(number) + skip, length};
    wanted += length;
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
  const auto taken = sendmsg(socket_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
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

void SocketSendPort::noteSent(std::size_t bytes) {
  bytesSent_.fetch_add(bytes, std::memory_order_relaxed);
  sentOfNext_ += bytes;
  while (sent_ != committed_ && sentOfNext_ >= frameBytes_[sent_ % chunkSlots]) {
    sentOfNext_ -= frameBytes_[sent_ % chunkSlots];
    ++sent_;
  }
}

SocketReceivePort::SocketReceivePort(FileDescriptor socket, std::string peerName, std::size_t chunkBytes)
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
    if (there) there = readMore();
    if (!there) {
      failure_ = log::decided(there.error());
      return *failure_;
    }
    if (!*there) return false;
  }
  return true;
}

void SocketReceivePort::release() {
  begin_ += FrameHeader::frameBytes(chunk_.size());
  if (begin_ == end_) begin_ = end_ = 0;  // stay in warm memory
  chunk_ = {};
  shown_ = false;
  ++received_;
}

WaitSource SocketReceivePort::waitSource() const {
  return {.kind = WaitSource::Kind::socket, .descriptor = socket_.get(), .events = POLLIN};
}

Result<bool> SocketReceivePort::frameIsThere() {
  if (end_ - begin_ < sizeof(FrameHeader)) return false;
  FrameHeader header;
  std::memcpy(&header, buffer_.get() + begin_, sizeof header);
  if (header.magic != FrameHeader::expectedMagic || header.length > chunkBytes_ || header.sequence != received_)
    return Error::remote("{} sent nonsense where chunk {} was expected (length {})", peerName_, received_,
                         header.length);
  if (end_ - begin_ < FrameHeader::frameBytes(header.length)) return false;
  chunk_ = {buffer_.get() + begin_ + sizeof header, header.length};
  shown_ = true;
  return true;
}

// True if bytes came.
Result<bool> SocketReceivePort::readMore() {
  const std::size_t largest = FrameHeader::frameBytes(chunkBytes_);
  if (begin_ > 0 && begin_ + largest > capacity_) {
    std::memmove(buffer_.get(), buffer_.get() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  const auto got = recv(socket_.get(), buffer_.get() + end_, std::min(capacity_ - end_, 2 * largest), MSG_DONTWAIT);
  if (got > 0) {
    end_ += static_cast<std::size_t>(got);
    return true;
  }
  if (got == 0) return Error::remote("{} closed its connection while bytes from it were expected", peerName_);
  if (errno == EAGAIN || errno == EINTR) return false;
  return Error::remote("the connection from {} broke: {}", peerName_, strerror(errno));
}

}  // namespace falcon::transport
