#include "socket/socket_listener.h"

#include "base/parameters.h"
#include "base/wire.h"
#include "socket/socket_receiver.h"

namespace falcon::net {
namespace {

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
  auto doorman = Doorman::make(address, handle);
  if (!doorman) return doorman.error();
  return std::unique_ptr<Listener>(std::make_unique<SocketListener>(device, std::move(*doorman)));
}

Result<std::unique_ptr<Connection>> SocketListener::accept() {
  const Nanoseconds now = SystemClock::instance().now();
  std::optional<std::uint64_t> complete;
  while (!complete) {
    auto guest = doorman_->next(now);
    if (!guest) return guest.error();
    if (!*guest) break;
    complete = gather(**guest, now);
  }
  std::erase_if(gatherings_, [&](const auto& entry) {
    return entry.second.missing > 0 && now - entry.second.since > parameters::initTimeout.value();
  });
  if (!complete) return std::unique_ptr<Connection>();
  auto gathered = gatherings_.extract(*complete);
  Gathering& all = gathered.mapped();
  return SocketReceiver::make(device_, std::move(all.sockets), std::move(all.from));
}

std::optional<std::uint64_t> SocketListener::gather(Guest& guest, Nanoseconds now) {
  const auto dropped = [&](const char* why) {
    doorman_->dropped(guest.from, why, now);
    return std::nullopt;
  };
  const auto greeting = SocketGreeting::read(guest.payload);
  if (!greeting) return dropped("its greeting is of another release");
  Gathering& all = gatherings_[greeting->connection];
  if (all.sockets.empty()) {
    all.sockets.resize(greeting->sockets);
    all.missing = greeting->sockets;
    all.from = guest.from;
    all.since = now;
  }
  if (all.sockets.size() != greeting->sockets || all.sockets[greeting->place])
    return dropped("its greeting contradicts an earlier one");
  all.sockets[greeting->place] = std::move(guest.socket);
  if (--all.missing > 0) return std::nullopt;
  return greeting->connection;
}

}  // namespace falcon::net
