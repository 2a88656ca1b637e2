#include <fcntl.h>
#include <liburing.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <vector>

#include "socket/mover.h"

namespace falcon::net {
namespace {

class RingMover final : public Mover {
 public:
  RingMover(std::span<const FileDescriptor> sockets, Direction direction)
      : direction_(direction), moves_(sockets.size()) {
    for (std::size_t place = 0; place < sockets.size(); ++place) moves_[place].socket = sockets[place].get();
  }
  bool open() {
    isOpen_ = io_uring_queue_init(static_cast<unsigned>(moves_.size()), &ring_, 0) == 0;
    if (!isOpen_) return false;
    // Of a socket that does not block the ring says "try again" instead of waiting.
    for (const Move& move : moves_) fcntl(move.socket, F_SETFL, fcntl(move.socket, F_GETFL) & ~O_NONBLOCK);
    return true;
  }
  ~RingMover() override {
    if (!isOpen_) return;
    // The kernel uses the moves' memory until it says that it does not: an end to the sockets makes it say so.
    for (const Move& move : moves_)
      if (move.isPending) shutdown(move.socket, direction_ == Direction::send ? SHUT_RDWR : SHUT_RD);
    __kernel_timespec patience{.tv_sec = 1, .tv_nsec = 0};
    for (io_uring_cqe* entry = nullptr; pending_ > 0 && io_uring_wait_cqe_timeout(&ring_, &entry, &patience) == 0;) {
      io_uring_cqe_seen(&ring_, entry);
      --pending_;
    }
    io_uring_queue_exit(&ring_);
  }

  void begin(int socket, std::span<const iovec> parts) override {
    Move& move = moves_[static_cast<std::size_t>(socket)];
    std::copy(parts.begin(), parts.end(), move.memory.begin());
    move.message.msg_iov = move.memory.data();
    move.message.msg_iovlen = parts.size();
    submit(socket);
  }

  std::optional<Moved> next() override {
    if (isUnsubmitted_ && io_uring_submit(&ring_) >= 0) isUnsubmitted_ = false;
    io_uring_cqe* entry = nullptr;
    if (pending_ == 0 || io_uring_peek_cqe(&ring_, &entry) != 0) return std::nullopt;
    const int place = static_cast<int>(io_uring_cqe_get_data64(entry));
    const ssize_t bytes = entry->res;
    io_uring_cqe_seen(&ring_, entry);
    moves_[static_cast<std::size_t>(place)].isPending = false;
    --pending_;
    // Cancelled: the thread that submitted it has ended.
    if (bytes != -EINTR && bytes != -EAGAIN && bytes != -ECANCELED) return Moved{place, bytes};
    submit(place);
    return std::nullopt;
  }

 private:
  struct Move {
    int socket = -1;
    bool isPending = false;
    std::array<iovec, mostParts> memory{};
    msghdr message{};
  };

  void submit(int socket) {
    Move& move = moves_[static_cast<std::size_t>(socket)];
    io_uring_sqe* entry = io_uring_get_sqe(&ring_);  // there is one for each socket
    if (direction_ == Direction::send)
      io_uring_prep_sendmsg(entry, move.socket, &move.message, MSG_NOSIGNAL);
    else
      io_uring_prep_recvmsg(entry, move.socket, &move.message, 0);
    io_uring_sqe_set_data64(entry, static_cast<std::uint64_t>(socket));
    move.isPending = true;
    ++pending_;
    isUnsubmitted_ = true;
  }

  const Direction direction_;
  io_uring ring_{};
  bool isOpen_ = false;
  bool isUnsubmitted_ = false;
  std::vector<Move> moves_;
  int pending_ = 0;
};

}  // namespace

std::unique_ptr<Mover> ringMover(std::span<const FileDescriptor> sockets, Direction direction) {
  auto mover = std::make_unique<RingMover>(sockets, direction);
  if (!mover->open()) return nullptr;
  return mover;
}

}  // namespace falcon::net
