#include "core/tcp_dialling.h"

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <utility>

#include "base/log.h"
#include "base/system_error.h"
#include "core/socket_options.h"
#include "transport/socket_options.h"

namespace falcon::net {
namespace {

constexpr Nanoseconds pause = 50ms;

}  // namespace

TcpDialling::TcpDialling(const ListenerHandle& handle, const SocketAddress& from, std::string payload)
    : handle_(handle), from_(from), payload_(std::move(payload)) {}

Status TcpDialling::progress() {
  if (stage_ == Stage::none)
    if (const Status begun = begin(); !begun) return begun;
  if (stage_ == Stage::connecting)
    if (const Status connected = onConnected(); !connected) return connected;
  return stage_ == Stage::greeting ? onAnswer() : Status();
}

Status TcpDialling::begin() {
  if (SystemClock::instance().now() < notBefore_) return {};
  socket_ = newSocket(handle_.address.family());
  if (!socket_)
    return log::decided(Error::system("no socket to connect to {} with: {}", handle_.address.text(), reasonOf(errno)));
  // From the device's own address, so that the bytes go out by it.
  if (from_.family() == handle_.address.family() && !transport::takeAddress(socket_.get(), from_))
    return log::decided(Error::system("cannot connect from {}: {}", from_.host(), reasonOf(errno)));
  if (connect(socket_.get(), handle_.address.get(), handle_.address.length()) != 0 && errno != EINPROGRESS)
    return unreachable(errno);
  stage_ = Stage::connecting;
  return {};
}

Status TcpDialling::onConnected() {
  pollfd entry{socket_.get(), POLLOUT, 0};
  if (poll(&entry, 1, 0) != 1) return {};
  int number = 0;
  socklen_t length = sizeof number;
  if (getsockopt(socket_.get(), SOL_SOCKET, SO_ERROR, &number, &length) != 0) number = errno;
  if (number != 0) return unreachable(number);
  prepareDataSocket(socket_.get());
  transport::Hello hello;
  hello.key = handle_.listener;
  hello.secret = handle_.secret;
  hello.payload = payload_;
  greeting_.emplace(std::move(hello));
  if (const Status opened = greeting_->open(socket_.get(), handle_.address); !opened)
    return log::decided(opened.error());
  stage_ = Stage::greeting;
  return {};
}

Status TcpDialling::onAnswer() {
  using Progress = transport::Greeting::Progress;
  switch (greeting_->read(socket_.get())) {
    case Progress::incomplete:
      break;
    case Progress::complete:
      stage_ = Stage::through;
      break;
    case Progress::turnedAway:  // it had too many that had not proven anything
      stage_ = Stage::none;
      socket_.reset();
      greeting_.reset();
      notBefore_ = SystemClock::instance().now() + pause;
      break;
    case Progress::failed:
      return log::decided(Error::remote("{}", greeting_->error().message()));
  }
  return {};
}

Error TcpDialling::unreachable(int number) const {
  return log::decided(
      Error::remote("cannot connect from {} to {}: {}", from_.host(), handle_.address.text(), reasonOf(number)));
}

}  // namespace falcon::net
