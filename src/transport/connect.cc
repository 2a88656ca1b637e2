#include "transport/connect.h"

#include <arpa/inet.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <thread>

#include "base/log.h"
#include "base/system_error.h"
#include "transport/descriptor_limit.h"
#include "transport/fork_guard.h"
#include "transport/socket_options.h"

namespace falcon::transport {
namespace {

bool loopback(const SocketAddress& address) {
  if (address.family() == AF_INET6)
    return IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6*>(address.get())->sin6_addr);
  return ntohl(reinterpret_cast<const sockaddr_in*>(address.get())->sin_addr.s_addr) >> 24 == 127;
}

Error connectError(const SocketAddress& to, int number) {
  return Error::remote("cannot connect to {}: {}", to.text(), reasonOf(number));
}

// While nobody listens on a port of the ephemeral range, a connection to it may come from that very port: to itself.
bool connectedToItself(int socket) {
  sockaddr_storage here{}, there{};
  socklen_t hereLength = sizeof here, thereLength = sizeof there;
  return getsockname(socket, reinterpret_cast<sockaddr*>(&here), &hereLength) == 0 &&
         getpeername(socket, reinterpret_cast<sockaddr*>(&there), &thereLength) == 0 && hereLength == thereLength &&
         std::memcmp(&here, &there, hereLength) == 0;
}

/// 0, or why the connection of a socket that is writable has failed.
int problemOf(int socket) {
  int problem = 0;
  socklen_t length = sizeof problem;
  getsockopt(socket, SOL_SOCKET, SO_ERROR, &problem, &length);
  return problem == 0 && connectedToItself(socket) ? ECONNREFUSED : problem;
}

using Instant = std::chrono::steady_clock::time_point;

constexpr auto lookInterval = 100ms;  // whether the caller has given up

enum class Event { ready, late, givenUp, problem };
Event await(int socket, short events, Instant deadline, const std::function<bool()>& givenUp) {
  pollfd entry{socket, events, 0};
  while (true) {
    const Nanoseconds left = deadline - std::chrono::steady_clock::now();
    const auto milliseconds =
        std::chrono::ceil<std::chrono::milliseconds>(givenUp ? std::min<Nanoseconds>(left, lookInterval) : left)
            .count();
    const int ready = poll(&entry, 1, static_cast<int>(std::clamp<std::int64_t>(milliseconds, 1, 1 << 30)));
    if (ready > 0) return Event::ready;
    if (ready < 0 && errno != EINTR) return Event::problem;
    if (givenUp && givenUp()) return Event::givenUp;
    if (std::chrono::steady_clock::now() >= deadline) return Event::late;
  }
}

struct Attempt {
  FileDescriptor socket{};
  std::optional<Error> error{};
  enum class Why { other, refused, turnedAway, final } why = Why::other;
};

Attempt failed(Error error, Attempt::Why why = Attempt::Why::other) {
  return {{}, std::move(error), why};
}

/// What a wait ends an attempt with, but for its limit, about which the caller has words of its own.
std::optional<Attempt> endedBy(Event event, const SocketAddress& to) {
  if (event == Event::givenUp) return failed(Error::remote("gave up connecting to {}", to.text()), Attempt::Why::final);
  if (event == Event::problem) return failed(connectError(to, errno));
  return std::nullopt;
}

Attempt connectOnce(const SocketAddress& from, const SocketAddress& to, const Hello& hello, Instant deadline,
                    const std::function<bool()>& givenUp, Listener& seen) {
  using Why = Attempt::Why;
  seen = Listener::none;
  auto socket = beginConnect(from, to);
  if (!socket) return failed(socket.error(), socket.error().code() == ErrorCode::remote ? Why::other : Why::final);
  const Event connected = await(socket->get(), POLLOUT, deadline, givenUp);
  if (connected == Event::late) return failed(connectError(to, ETIMEDOUT));
  if (auto ended = endedBy(connected, to)) return std::move(*ended);
  if (const int problem = problemOf(socket->get()))
    return failed(connectError(to, problem), problem == ECONNREFUSED ? Why::refused : Why::other);
  seen = Listener::silent;
  Greeting greeting(hello);
  prepareSocket(socket->get(), hello.purpose);
  if (const Status opened = greeting.open(socket->get(), to); !opened)
    return failed(opened.error(), opened.error().code() == ErrorCode::remote ? Why::other : Why::final);
  while (true) {
    const Event answered = await(socket->get(), POLLIN, deadline, givenUp);
    if (answered == Event::late)
      return failed(Error::remote("{} has accepted a connection and not said whether it knows the secret of this job: "
                                  "it was not ready for us in time, or is another program",
                                  to.text()),
                    Why::final);
    if (auto ended = endedBy(answered, to)) return std::move(*ended);
    switch (greeting.read(socket->get())) {
      case Greeting::Progress::incomplete:
        continue;
      case Greeting::Progress::complete:
        return {std::move(*socket)};
      case Greeting::Progress::turnedAway:
        seen = Listener::hungUp;
        return failed(Error::remote("{} hung up before it had said anything", to.text()), Why::turnedAway);
      case Greeting::Progress::failed:
        return failed(greeting.error(), Why::final);
    }
  }
}

/// Until it is hung up on, once it was heard: only then this process may end, which may be the one that tells the
/// others.
void greetAndWait(const SocketAddress& to, const Hello& hello, Nanoseconds limit) {
  const Instant deadline = std::chrono::steady_clock::now() + limit;
  const auto socket = connectWithHello({}, to, hello, limit);
  char ignored[256];
  while (socket && await(socket->get(), POLLIN, deadline, {}) == Event::ready &&
         recv(socket->get(), ignored, sizeof ignored, MSG_DONTWAIT) > 0) {
  }
}

}  // namespace

Result<FileDescriptor> beginConnect(const SocketAddress& from, const SocketAddress& to) {
  FileDescriptor socket = newDescriptor(::socket(to.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket) return Error::system("no socket for a connection to {}: {}", to.text(), reasonOf(errno));
  closeInForkedChildren(socket.get());
  // A loopback source reaches nobody outside, and nobody outside is reached at a loopback address.
  if (!from.empty() && from.family() == to.family() && loopback(from) == loopback(to)) {
    if (!takeAddress(socket.get(), from))
      return Error::system("cannot use the address {} for a connection to {}: {}", from.host(), to.text(),
                           reasonOf(errno));
  }
  if (connect(socket.get(), to.get(), to.length()) != 0 && errno != EINPROGRESS && errno != EINTR)
    return connectError(to, errno);
  return socket;
}

Status finishConnect(int socket, const SocketAddress& to, Purpose purpose, Greeting& greeting) {
  if (const int problem = problemOf(socket)) return connectError(to, problem);
  prepareSocket(socket, purpose);
  return greeting.open(socket, to);
}

Result<FileDescriptor> connectWithHello(const SocketAddress& from, const SocketAddress& to, const Hello& hello,
                                        Nanoseconds limit, Nanoseconds refusedLimit,
                                        const std::function<bool()>& givenUp, Listener* seen) {
  const Instant deadline = std::chrono::steady_clock::now() + limit;
  auto pause = std::chrono::milliseconds(5);
  Instant refusedSince = Instant::max();  // without anything else between
  Listener unasked;
  while (true) {
    Attempt attempt = connectOnce(from, to, hello, deadline, givenUp, seen ? *seen : unasked);
    if (!attempt.error) return std::move(attempt.socket);
    const Instant now = std::chrono::steady_clock::now();
    const bool refused = attempt.why == Attempt::Why::refused;
    refusedSince = refused ? std::min(refusedSince, now) : Instant::max();
    const bool nobodyListens = refused && now - refusedSince >= refusedLimit;
    // To a rendezvous one comes too late, not too early.
    const bool tooLate = attempt.why == Attempt::Why::turnedAway && hello.purpose == Purpose::rendezvous;
    if (tooLate || (givenUp && givenUp())) return *attempt.error;
    // Refused: it may not listen yet. All else that comes from far away may pass too.
    if (attempt.why == Attempt::Why::final || nobodyListens || now + pause >= deadline)
      return log::decided(*attempt.error);
    std::this_thread::sleep_for(pause);
    pause = std::min(2 * pause, std::chrono::milliseconds(200));
  }
}

void withdraw(const SocketAddress& to, Hello hello, Nanoseconds limit) {
  hello.withdraws = true;
  const DescriptorLimitLifted forOneSocket;
  const bool none = !newDescriptor(::socket(to.family(), SOCK_STREAM | SOCK_CLOEXEC, 0)) && errno == EMFILE;
  if (none)
    withDescriptorsOfItsOwn(1, [&] { greetAndWait(to, hello, limit); });
  else
    greetAndWait(to, hello, limit);
}

}  // namespace falcon::transport
