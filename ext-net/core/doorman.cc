#include "core/doorman.h"

#include <sys/socket.h>

#include <cerrno>
#include <utility>

#include "base/log.h"
#include "base/random.h"
#include "base/system_error.h"
#include "core/socket_options.h"
#include "transport/descriptor_limit.h"

namespace falcon::net {
namespace {

constexpr std::size_t mostArrivals = 256;
constexpr Nanoseconds arrivalLimit = 10s;

}  // namespace

Result<std::unique_ptr<Doorman>> Doorman::make(const SocketAddress& address, Handle handle) {
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
  return std::make_unique<Doorman>(std::move(socket), *number, *secret);
}

Doorman::Doorman(FileDescriptor socket, std::uint64_t number, const transport::Secret& secret)
    : socket_(std::move(socket)), number_(number), secret_(secret) {}

Result<std::optional<Guest>> Doorman::next(Nanoseconds now) {
  // Before others come in, who may be so many that somebody has to go.
  if (auto guest = proven(now)) return guest;
  if (const Status taken = takeArrivals(now); !taken) return taken.error();
  return std::optional<Guest>();
}

std::optional<Guest> Doorman::proven(Nanoseconds now) {
  for (auto arrival = arrivals_.begin(); arrival != arrivals_.end();) {
    const Step step = advance(*arrival, now);
    if (step == Step::proven) {
      Guest guest{std::move(arrival->socket), std::move(arrival->from), arrival->challenge.hello().payload};
      arrivals_.erase(arrival);
      return guest;
    }
    arrival = step == Step::stranger ? arrivals_.erase(arrival) : std::next(arrival);
  }
  return std::nullopt;
}

Status Doorman::takeArrivals(Nanoseconds now) {
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
      // Strangers do not know whom to look for, and are never challenged.
      auto oldest = std::ranges::find_if(arrivals_, [](const Arrival& each) { return !each.isChallenged; });
      if (oldest == arrivals_.end()) oldest = arrivals_.begin();
      dropped(oldest->from, "too many have come that prove nothing", now);
      arrivals_.erase(oldest);
    }
    arrivals_.push_back(
        {std::move(socket), SocketAddress(reinterpret_cast<const sockaddr*>(&from), length).text(), now});
  }
}

Doorman::Step Doorman::advance(Arrival& arrival, Nanoseconds now) {
  using Progress = transport::Challenge::Progress;
  auto progress = arrival.challenge.read(arrival.socket.get());
  if (progress == Progress::opened) {
    if (arrival.challenge.key() != number_)
      return dropped(arrival.from, "it looks for another listener", now), Step::stranger;
    if (const Status challenged = arrival.challenge.challenge(arrival.socket.get(), secret_); !challenged)
      return dropped(arrival.from, challenged.error().message(), now), Step::stranger;
    arrival.isChallenged = true;
    arrival.since = now;  // it had to wait until we looked
    progress = arrival.challenge.read(arrival.socket.get());
  }
  if (progress == Progress::complete) return Step::proven;
  if (progress == Progress::stranger) return dropped(arrival.from, arrival.challenge.reason(), now), Step::stranger;
  if (now - arrival.since <= arrivalLimit) return Step::waits;
  return dropped(arrival.from, "it has not proven in 10 s that it belongs to the job", now), Step::stranger;
}

void Doorman::dropped(const std::string& from, std::string_view why, Nanoseconds now) {
  if (const auto held = dropLog_.pass(now))
    log::warn("a connection from {} is dropped: {}{}", from, why,
              *held ? fmt::format(" ({} more before it)", *held) : "");
}

}  // namespace falcon::net
