#include "transport/window_connection.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

namespace falcon::transport {

void WindowConnection::begin(const WindowHeader& header, const std::byte* from) {
  header_ = header;
  from_ = from;
  sent_ = answered_ = 0;
}

Error WindowConnection::closed(int problem) const {
  return Error::remote("{} has left the communicator or died: {}", peerName_,
                       problem == 0 ? "it closed the connection" : strerror(problem));
}

Status WindowConnection::send() {
  throttled_ = false;
  while (sent_ < wanted()) {
    std::size_t most = wanted() - sent_;
    if (throttle_) [[unlikely]] {
      most = throttle_->take(most);
      throttled_ = most == 0;
      if (throttled_) return {};
    }
    std::array<iovec, 2> pieces{};
    std::size_t count = 0;
    const std::size_t ofHeader = std::min(most, sizeof header_ - std::min(sent_, sizeof header_));
    if (ofHeader > 0) pieces[count++] = {reinterpret_cast<std::byte*>(&header_) + sent_, ofHeader};
    if (most > ofHeader) {
      const std::size_t begun = sent_ + ofHeader - sizeof header_;
      pieces[count++] = {const_cast<std::byte*>(from_) + begun, most - ofHeader};
    }
    msghdr message{};
    message.msg_iov = pieces.data();
    message.msg_iovlen = count;
    const auto taken = sendmsg(socket_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    const int problem = errno;
    if (throttle_) throttle_->giveBack(most - static_cast<std::size_t>(std::max<ssize_t>(taken, 0)));
    if (taken < 0 && problem == EINTR) continue;
    if (taken < 0 && (problem == EAGAIN || problem == EWOULDBLOCK)) return {};
    if (taken < 0) return closed(problem);
    sent_ += static_cast<std::size_t>(taken);
  }
  return {};
}

Result<bool> WindowConnection::progress() {
  if (const Status moved = send(); !moved) return moved.error();
  if (sent_ < wanted()) return false;
  while (answered_ < sizeof answer_) {
    const auto got = recv(socket_.get(), reinterpret_cast<std::byte*>(&answer_) + answered_, sizeof answer_ - answered_,
                          MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return false;
    if (got <= 0) return closed(got < 0 ? errno : 0);
    answered_ += static_cast<std::size_t>(got);
  }
  return true;
}

WaitSource WindowConnection::waitSource() const {
  // Out of tokens the socket is writable all the same: only time helps then.
  const short events = throttled_ ? 0 : sent_ < wanted() ? POLLOUT : POLLIN;
  return {.kind = WaitSource::Kind::socket, .descriptor = socket_.get(), .events = events};
}

}  // namespace falcon::transport
