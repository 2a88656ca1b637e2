#include "bootstrap/message_channel.h"

#include <poll.h>

#include <algorithm>
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

MessageChannel::Framed MessageChannel::frame(std::string_view message) {
  const auto length = static_cast<std::uint32_t>(std::min<std::size_t>(message.size(), UINT32_MAX));
  std::string framed(reinterpret_cast<const char*>(&length), lengthBytes);
  return std::make_shared<const std::string>(framed.append(message));
}

void MessageChannel::sendOnly(const FileDescriptor& socket, std::string_view message) {
  const Framed framed = frame(message);
  (void)::send(socket.get(), framed->data(), framed->size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  shutdown(socket.get(), SHUT_WR);
}

bool MessageChannel::send(Framed framed) {
  const std::lock_guard lock(mutex_);
  if (closed_ || broken_ || finishing_ || framed->size() > lengthBytes + maximumMessage) return false;
  if (waiting_ + framed->size() > queueLimit_) return false;
  waiting_ += framed->size();
  output_.push_back(std::move(framed));
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
  while (!output_.empty() && !broken_) {
    const std::string& first = *output_.front();
    const auto count = ::send(socket_.get(), first.data() + sent_, first.size() - sent_, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count < 0) {
      if (errno == EAGAIN || errno == EWOULDBLOCK) break;
      if (errno != EINTR) broken_ = true;
      continue;
    }
    sent_ += static_cast<std::size_t>(count);
    waiting_ -= static_cast<std::size_t>(count);
    if (sent_ < first.size()) continue;
    output_.pop_front();
    sent_ = 0;
  }
  const bool done = broken_ || output_.empty();
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
