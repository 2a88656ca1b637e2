#include "bootstrap/message_channel.h"

#include <poll.h>

#include <cerrno>
#include <cstring>

namespace falcon::bootstrap {
namespace {

constexpr std::size_t lengthBytes = sizeof(std::uint32_t);

std::string reasonOf(int number) {
  if (number == ETIMEDOUT || number == EHOSTUNREACH || number == ENETUNREACH) return "its host fell silent";
  if (number == ECONNRESET || number == EPIPE) return "its connection was closed";
  return std::strerror(number);
}

}  // namespace

MessageChannel::MessageChannel(std::shared_ptr<transport::Reactor> reactor, FileDescriptor socket,
                               std::size_t queueLimit)
    : reactor_(std::move(reactor)), queueLimit_(queueLimit), socket_(std::move(socket)) {}

MessageChannel::~MessageChannel() {
  close();
}

void MessageChannel::start(MessageHandler message, CloseHandler closed) {
  message_ = std::move(message);
  closedHandler_ = std::move(closed);
  const std::lock_guard lock(mutex_);
  if (!closed_) watch();
}

void MessageChannel::watch() {
  const short events = watchingOutput_ ? POLLIN | POLLOUT : POLLIN;
  reactor_->watch(socket_.get(), events, [weak = weak_from_this()](short) {
    if (const auto self = weak.lock()) self->onEvents();
  });
}

bool MessageChannel::send(std::string_view message) {
  const std::lock_guard lock(mutex_);
  if (closed_ || broken_ || finishing_ || message.size() > maximumMessage) return false;
  if (output_.size() - sent_ + message.size() > queueLimit_) return false;
  const auto length = static_cast<std::uint32_t>(message.size());
  output_.append(reinterpret_cast<const char*>(&length), lengthBytes).append(message);
  if (!watchingOutput_) flush();
  return true;
}

void MessageChannel::finish() {
  const std::lock_guard lock(mutex_);
  if (closed_ || finishing_) return;
  finishing_ = true;
  if (!watchingOutput_) flush();
}

void MessageChannel::flush() {
  while (sent_ < output_.size() && !broken_) {
    const auto count =
        ::send(socket_.get(), output_.data() + sent_, output_.size() - sent_, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count >= 0)
      sent_ += static_cast<std::size_t>(count);
    else if (errno == EAGAIN || errno == EWOULDBLOCK)
      break;
    else if (errno != EINTR)
      broken_ = true;
  }
  const bool done = broken_ || sent_ == output_.size();
  if (done || sent_ > output_.size() / 2) {
    output_.erase(0, done ? std::string::npos : sent_);
    sent_ = 0;
  }
  if (done && finishing_) shutdown(socket_.get(), SHUT_WR);
  if (watchingOutput_ == !done) return;
  watchingOutput_ = !done;
  watch();
}

void MessageChannel::onEvents() {
  {
    const std::lock_guard lock(mutex_);
    if (closed_) return;
    inside_ = std::this_thread::get_id();
    if (watchingOutput_) flush();
  }
  std::string why;
  if (!receive(why)) {
    close();
    closedHandler_(why);
  }
  const std::lock_guard lock(mutex_);
  inside_ = {};
  handlersLeft_.notify_all();
}

// False when the connection is over; true when there is nothing more for now, or we were closed by a handler.
bool MessageChannel::receive(std::string& why) {
  char buffer[64 << 10];
  for (int turn = 0; turn < 16; ++turn) {  // then others have their turn
    int number;
    {
      const std::lock_guard lock(mutex_);
      if (closed_) return true;
      number = socket_.get();
    }
    const auto count = recv(number, buffer, sizeof buffer, MSG_DONTWAIT);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return true;
    if (count <= 0) {
      why = reasonOf(count == 0 ? ECONNRESET : errno);
      return false;
    }
    input_.append(buffer, static_cast<std::size_t>(count));
    if (!deliver(why)) return false;
  }
  return true;
}

// Hands out the whole messages in input_.
bool MessageChannel::deliver(std::string& why) {
  std::size_t begin = 0;
  while (input_.size() - begin >= lengthBytes) {
    std::uint32_t length;
    std::memcpy(&length, input_.data() + begin, lengthBytes);
    if (length > maximumMessage) {
      why = "it sent a message of impossible length";
      return false;
    }
    if (input_.size() - begin - lengthBytes < length) break;
    message_(std::string_view(input_).substr(begin + lengthBytes, length));
    begin += lengthBytes + length;
    const std::lock_guard lock(mutex_);
    if (closed_) return true;
  }
  input_.erase(0, begin);
  return true;
}

void MessageChannel::close() {
  std::unique_lock lock(mutex_);
  if (!closed_ && socket_) {
    closed_ = true;
    const int number = socket_.get();
    lock.unlock();
    reactor_->unwatch(number);
    lock.lock();
    socket_.reset();
  }
  // Who closed it before us may have been the reactor's thread, which is telling the close handler now.
  if (inside_ != std::this_thread::get_id()) handlersLeft_.wait(lock, [&] { return inside_ == std::thread::id{}; });
}

}  // namespace falcon::bootstrap
