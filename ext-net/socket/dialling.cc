#include "socket/dialling.h"

#include <poll.h>

#include <algorithm>
#include <cerrno>

#include "base/log.h"
#include "base/parameters.h"
#include "base/random.h"
#include "base/system_error.h"
#include "socket/socket_listener.h"
#include "socket/socket_options.h"
#include "transport/descriptor_limit.h"

namespace falcon::net {
namespace {

constexpr Nanoseconds pause = 50ms;

}  // namespace

Dialling::Dialling(const ListenerHandle& handle, const SocketAddress& from, std::size_t sockets)
    : handle_(handle),
      from_(from),
      since_(SystemClock::instance().now()),
      limit_(parameters::initTimeout.value()),
      attempts_(sockets) {}

bool Dialling::isAbout(const ListenerHandle& handle) const {
  return handle.listener == handle_.listener && handle.secret == handle_.secret;
}

Result<std::optional<std::vector<FileDescriptor>>> Dialling::progress() {
  if (connection_ == 0) {
    const auto number = randomValue<std::uint64_t>();
    if (!number) return log::decided(number.error());
    connection_ = *number;
    const Status room = transport::reserveDescriptors(2 * attempts_.size(), "a connection");
    if (!room) return log::decided(room.error());
  }
  for (std::size_t place = 0; place < attempts_.size(); ++place)
    if (const Status advanced = advance(attempts_[place], place); !advanced) return advanced.error();
  const bool isThrough =
      std::all_of(attempts_.begin(), attempts_.end(), [](const Attempt& one) { return one.stage == Stage::through; });
  if (!isThrough) {
    if (!isOverdue(SystemClock::instance().now())) return std::optional<std::vector<FileDescriptor>>();
    return log::decided(Error::remote("{} has not let us in for {:.0f} s ({}): is the rank there still alive?",
                                      handle_.address.text(), seconds(limit_), parameters::initTimeout.name()));
  }
  std::vector<FileDescriptor> sockets;
  for (Attempt& attempt : attempts_) sockets.push_back(std::move(attempt.socket));
  return std::optional(std::move(sockets));
}

Status Dialling::advance(Attempt& attempt, std::size_t place) {
  if (attempt.stage == Stage::none)
    if (const Status begun = begin(attempt); !begun) return begun;
  if (attempt.stage == Stage::connecting)
    if (const Status connected = onConnected(attempt, place); !connected) return connected;
  return attempt.stage == Stage::greeting ? onAnswer(attempt) : Status();
}

Status Dialling::begin(Attempt& attempt) {
  if (SystemClock::instance().now() < attempt.notBefore) return {};
  attempt.socket = newSocket(handle_.address.family());
  if (!attempt.socket)
    return log::decided(Error::system("no socket to connect to {} with: {}", handle_.address.text(), reasonOf(errno)));
  // From the device's own address, so that the bytes go out by it.
  SocketAddress own = from_;
  own.setPort(0);
  if (own.family() == handle_.address.family() && bind(attempt.socket.get(), own.get(), own.length()) != 0)
    return log::decided(Error::system("cannot connect from {}: {}", own.host(), reasonOf(errno)));
  if (connect(attempt.socket.get(), handle_.address.get(), handle_.address.length()) != 0 && errno != EINPROGRESS)
    return unreachable(errno);
  attempt.stage = Stage::connecting;
  return {};
}

Status Dialling::onConnected(Attempt& attempt, std::size_t place) {
  pollfd entry{attempt.socket.get(), POLLOUT, 0};
  if (poll(&entry, 1, 0) != 1) return {};
  int number = 0;
  socklen_t length = sizeof number;
  if (getsockopt(attempt.socket.get(), SOL_SOCKET, SO_ERROR, &number, &length) != 0) number = errno;
  if (number != 0) return unreachable(number);
  prepareDataSocket(attempt.socket.get());
  transport::Hello hello;
  hello.key = handle_.listener;
  hello.secret = handle_.secret;
  hello.payload =
      SocketGreeting{connection_, static_cast<std::uint16_t>(place), static_cast<std::uint16_t>(attempts_.size())}
          .text();
  attempt.greeting.emplace(std::move(hello));
  if (const Status opened = attempt.greeting->open(attempt.socket.get(), handle_.address); !opened)
    return log::decided(opened.error());
  attempt.stage = Stage::greeting;
  return {};
}

Status Dialling::onAnswer(Attempt& attempt) {
  using Progress = transport::Greeting::Progress;
  switch (attempt.greeting->read(attempt.socket.get())) {
    case Progress::incomplete:
      break;
    case Progress::complete:
      attempt.stage = Stage::through;
      break;
    case Progress::turnedAway:  // it had too many that had not proven anything
      attempt = {};
      attempt.notBefore = SystemClock::instance().now() + pause;
      break;
    case Progress::failed:
      return log::decided(Error::remote("{}", attempt.greeting->error().message()));
  }
  return {};
}

Error Dialling::unreachable(int number) const {
  return log::decided(
      Error::remote("cannot connect from {} to {}: {}", from_.host(), handle_.address.text(), reasonOf(number)));
}

}  // namespace falcon::net
