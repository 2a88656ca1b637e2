#include "socket/socket_listener.h"

#include <cerrno>
#include <utility>

#include "base/log.h"
#include "base/parameters.h"
#include "base/random.h"
#include "base/system_error.h"
#include "base/wire.h"
#include "socket/socket_options.h"
#include "socket/socket_receiver.h"
#include "transport/descriptor_limit.h"

namespace falcon::net {
namespace {

constexpr std::size_t mostArrivals = 256;
constexpr Nanoseconds arrivalLimit = 10s;
constexpr std::uint32_t greetingMagic = 0x464e4731;

}  // namespace

std::string SocketGreeting::text() const {
  return WireWriter().put(greetingMagic).put(connection).put(place).put(sockets).take();
}

std::optional<SocketGreeting> SocketGreeting::read(std::string_view text) {
  WireReader reader(text);
  SocketGreeting greeting;
  const auto magic = reader.get<std::uint32_t>();
  greeting.connection = reader.get<std::uint64_t>();
  greeting.place = reader.get<std::uint16_t>();
  greeting.sockets = reader.get<std::uint16_t>();
  const bool sound = reader.finished() && magic == greetingMagic && greeting.sockets <= mostSockets &&
                     greeting.place < greeting.sockets;
  return sound ? std::optional(greeting) : std::nullopt;
}

Result<std::unique_ptr<Listener>> SocketListener::make(int device, const SocketAddress& address, Handle handle) {
  const auto number = randomValue<std::uint64_t>();
  if (!number) return log::decided(number.error());
  const auto secret = randomValue<transport::Secret>();
  if (!secret) return log::decided(secret.error());
  const auto cannot = [&](const char* what) {
    return log::decided(Error::system("cannot {} at {}: {}", what, address.host(), reasonOf(errno)));
  };
  FileDescriptor socket = newSocket(address.family());
  if (!socket) return cannot("make a socket to listen");
  if (bind(socket.get(), address.get(), address.length()) != 0) return cannot("take a port");
  if (::listen(socket.get(), SOMAXCONN) != 0) return cannot("listen");
  sockaddr_storage bound{};
  socklen_t length = sizeof bound;
  if (getsockname(socket.get(), reinterpret_cast<sockaddr*>(&bound), &length) != 0) return cannot("see the port");
  write({SocketAddress(reinterpret_cast<const sockaddr*>(&bound), length), *number, *secret}, handle);
  return std::unique_ptr<Listener>(std::make_unique<SocketListener>(device, std::move(socket), *number, *secret));
}

SocketListener::SocketListener(int device, FileDescriptor socket, std::uint64_t number, const transport::Secret& secret)
    : device_(device), socket_(std::move(socket)), number_(number), secret_(secret) {}

Result<std::unique_ptr<Connection>> SocketListener::accept() {
  const Nanoseconds now = SystemClock::instance().now();
  if (const Status taken = takeArrivals(now); !taken) return taken.error();
  std::optional<std::uint64_t> complete;
  for (auto arrival = arrivals_.begin(); arrival != arrivals_.end() && !complete;)
    arrival = advance(*arrival, now, complete) ? arrivals_.erase(arrival) : std::next(arrival);
  std::erase_if(gatherings_, [&](const auto& entry) {
    return entry.second.missing > 0 && now - entry.second.since > parameters::initTimeout.value();
  });
  if (!complete) return std::unique_ptr<Connection>();
  auto gathered = gatherings_.extract(*complete);
  Gathering& all = gathered.mapped();
  return SocketReceiver::make(device_, std::move(all.sockets), std::move(all.from));
}

Status SocketListener::takeArrivals(Nanoseconds now) {
  for (bool isRaised = false;;) {
    sockaddr_storage from{};
    socklen_t length = sizeof from;
    FileDescriptor socket = newDescriptor(
        accept4(socket_.get(), reinterpret_cast<sockaddr*>(&from), &length, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!socket) {
      const int number = errno;
      if (lacksDescriptors(number) && !std::exchange(isRaised, true) &&
          transport::reserveDescriptors(mostArrivals, "senders that have come"))
        continue;
      if (lacksDescriptors(number))
        return log::decided(Error::system("a sender that has come cannot be let in: {}", reasonOf(number)));
      // What is not about this socket is about one that has come and gone again.
      if (number == EINTR || number == ECONNABORTED || number == EPROTO) continue;
      return {};
    }
    prepareDataSocket(socket.get());
    if (arrivals_.size() == mostArrivals) {
      dropped(arrivals_.front(), "too many have come that prove nothing", now);
      arrivals_.pop_front();
    }
    arrivals_.push_back(
        {std::move(socket), SocketAddress(reinterpret_cast<const sockaddr*>(&from), length).text(), now});
  }
}

bool SocketListener::advance(Arrival& arrival, Nanoseconds now, std::optional<std::uint64_t>& done) {
  using Progress = transport::Challenge::Progress;
  auto progress = arrival.challenge.read(arrival.socket.get());
  if (progress == Progress::opened) {
    if (arrival.challenge.key() != number_) return dropped(arrival, "it looks for another listener", now), true;
    if (const Status challenged = arrival.challenge.challenge(arrival.socket.get(), secret_); !challenged)
      return dropped(arrival, challenged.error().message(), now), true;
    progress = arrival.challenge.read(arrival.socket.get());
  }
  if (progress == Progress::complete) return gather(arrival, now, done);
  if (progress == Progress::stranger) return dropped(arrival, arrival.challenge.reason(), now), true;
  if (now - arrival.since <= arrivalLimit) return false;
  return dropped(arrival, "it has not proven in 10 s that it belongs to the job", now), true;
}

bool SocketListener::gather(Arrival& arrival, Nanoseconds now, std::optional<std::uint64_t>& done) {
  const auto greeting = SocketGreeting::read(arrival.challenge.hello().payload);
  if (!greeting) return dropped(arrival, "its greeting is of another release", now), true;
  Gathering& all = gatherings_[greeting->connection];
  if (all.sockets.empty()) {
    all.sockets.resize(greeting->sockets);
    all.missing = greeting->sockets;
    all.from = arrival.from;
    all.since = now;
  }
  if (all.sockets.size() != greeting->sockets || all.sockets[greeting->place])
    return dropped(arrival, "its greeting contradicts an earlier one", now), true;
  all.sockets[greeting->place] = std::move(arrival.socket);
  if (--all.missing == 0) done = greeting->connection;
  return true;
}

void SocketListener::dropped(const Arrival& arrival, std::string_view why, Nanoseconds now) {
  if (const auto held = dropLog_.pass(now))
    log::warn("a connection from {} is dropped: {}{}", arrival.from, why,
              *held ? fmt::format(" ({} more before it)", *held) : "");
}

}  // namespace falcon::net
