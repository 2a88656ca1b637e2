#include <sys/epoll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <vector>

#include "base/log.h"
#include "base/system_error.h"
#include "socket/mover.h"

namespace falcon::net {
namespace {

class PollingMover final : public Mover {
 public:
  PollingMover(std::span<const FileDescriptor> sockets, Direction direction, FileDescriptor events)
      : direction_(direction), events_(std::move(events)) {
    for (const FileDescriptor& socket : sockets) moves_.push_back({.socket = socket.get()});
    over_.reserve(moves_.size());
  }

  void begin(int socket, std::span<const iovec> parts) override {
    Move& move = moves_[static_cast<std::size_t>(socket)];
    move.parts = static_cast<int>(parts.size());
    std::copy(parts.begin(), parts.end(), move.memory.begin());
    attempt(move, socket);
  }

  std::optional<Moved> next() override {
    if (over_.empty() && pending_ > 0) tryAgain();
    if (over_.empty()) return std::nullopt;
    const Moved moved = over_.back();
    over_.pop_back();
    return moved;
  }

 private:
  struct Move {
    int socket = -1;
    int parts = 0;
    std::array<iovec, mostParts> memory{};
    bool isPending = false;
  };

  void attempt(Move& move, int place) {
    msghdr message{};
    message.msg_iov = move.memory.data();
    message.msg_iovlen = static_cast<std::size_t>(move.parts);
    ssize_t bytes = 0;
    do {
      bytes = direction_ == Direction::send ? sendmsg(move.socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT)
                                            : recvmsg(move.socket, &message, MSG_DONTWAIT);
    } while (bytes < 0 && errno == EINTR);
    const bool later = bytes < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
    if (later != move.isPending) {
      move.isPending = later;
      pending_ += later ? 1 : -1;
    }
    if (!later) over_.push_back({place, bytes < 0 ? -errno : bytes});
  }

  void tryAgain() {
    if (!events_) return attempt(moves_[0], 0);
    // Edge-triggered: what becomes possible after an attempt that was in vain is told once.
    std::array<epoll_event, 16> ready;
    const int count = epoll_wait(events_.get(), ready.data(), static_cast<int>(ready.size()), 0);
    for (int i = 0; i < count; ++i) {
      const int place = ready[static_cast<std::size_t>(i)].data.fd;
      Move& move = moves_[static_cast<std::size_t>(place)];
      if (move.isPending) attempt(move, place);
    }
  }

  const Direction direction_;
  const FileDescriptor events_;  // none for a single socket: asking would cost what trying does
  std::vector<Move> moves_;
  std::vector<Moved> over_;
  int pending_ = 0;
};

}  // namespace

Result<std::unique_ptr<Mover>> pollingMover(std::span<const FileDescriptor> sockets, Direction direction) {
  FileDescriptor events;
  if (sockets.size() > 1) {
    events = newDescriptor(epoll_create1(EPOLL_CLOEXEC));
    if (!events) return log::decided(Error::system("no descriptor to watch sockets with: {}", reasonOf(errno)));
    for (std::size_t place = 0; place < sockets.size(); ++place) {
      epoll_event event{};
      event.events = EPOLLET | (direction == Direction::send ? EPOLLOUT : EPOLLIN);
      event.data.fd = static_cast<int>(place);
      if (epoll_ctl(events.get(), EPOLL_CTL_ADD, sockets[place].get(), &event) != 0)
        return log::decided(Error::system("a socket cannot be watched: {}", reasonOf(errno)));
    }
  }
  return std::unique_ptr<Mover>(std::make_unique<PollingMover>(sockets, direction, std::move(events)));
}

}  // namespace falcon::net
