#include "transport/connect.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <thread>

#include "base/log.h"
#include "base/system_error.h"
#include "transport/fork_guard.h"
#include "transport/hello.h"
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

Status greet(int socket, const SocketAddress& to, const Hello& hello) {
  prepareSocket(socket, hello.purpose);
  if (hello.payload.size() > maximumHelloPayload)
    return Error::internal("a greeting of {} bytes is too long", hello.payload.size());
  // A fresh socket takes so few bytes at once.
  const std::string bytes = encodeHello(hello);
  if (send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(bytes.size()))
    return connectError(to, errno);
  return {};
}

/// @param refused  whether nobody listens there, where it fails
Result<FileDescriptor> connectOnce(const SocketAddress& from, const SocketAddress& to, const Hello& hello,
                                   Nanoseconds limit, bool& refused) {
  refused = false;
  auto socket = beginConnect(from, to);
  if (!socket) return socket.error();
  pollfd entry{socket->get(), POLLOUT, 0};
  const auto deadline = std::chrono::steady_clock::now() + limit;
  int ready;
  do {
    const auto left = deadline - std::chrono::steady_clock::now();
    const auto milliseconds = std::chrono::ceil<std::chrono::milliseconds>(left).count();
    ready = poll(&entry, 1, static_cast<int>(std::clamp<std::int64_t>(milliseconds, 1, 1 << 30)));
  } while (ready < 0 && errno == EINTR);
  if (ready == 0) return connectError(to, ETIMEDOUT);
  if (ready < 0) return connectError(to, errno);
  const int problem = problemOf(socket->get());
  refused = problem == ECONNREFUSED;
  if (problem != 0) return connectError(to, problem);
  if (const auto done = greet(socket->get(), to, hello); !done) return done.error();
  return socket;
}

}  // namespace

Result<FileDescriptor> beginConnect(const SocketAddress& from, const SocketAddress& to) {
  FileDescriptor socket = newDescriptor(::socket(to.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket) return Error::system("no socket for a connection to {}: {}", to.text(), reasonOf(errno));
  closeInForkedChildren(socket.get());
  // A loopback source reaches nobody outside, and nobody outside is reached at a loopback address.
  if (!from.empty() && from.family() == to.family() && loopback(from) == loopback(to)) {
    SocketAddress source = from;
    source.setPort(0);
    const int on = 1;  // the port is chosen at connect, so that one port can serve many destinations
    setsockopt(socket.get(), IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on);
    if (bind(socket.get(), source.get(), source.length()) != 0)
      return Error::system("cannot use the address {} for a connection to {}: {}", source.host(), to.text(),
                           reasonOf(errno));
  }
  if (connect(socket.get(), to.get(), to.length()) != 0 && errno != EINPROGRESS && errno != EINTR)
    return connectError(to, errno);
  return socket;
}

Status finishConnect(int socket, const SocketAddress& to, const Hello& hello) {
  if (const int problem = problemOf(socket)) return connectError(to, problem);
  return greet(socket, to, hello);
}

Result<FileDescriptor> connectWithHello(const SocketAddress& from, const SocketAddress& to, const Hello& hello,
                                        Nanoseconds limit, Nanoseconds refusedLimit) {
  using Clock = std::chrono::steady_clock;
  const auto deadline = Clock::now() + limit;
  auto pause = std::chrono::milliseconds(5);
  std::optional<Clock::time_point> refusedSince;
  while (true) {
    bool refused;
    auto socket = connectOnce(from, to, hello, deadline - Clock::now(), refused);
    if (socket) return socket;
    // Refused: it may not listen yet. All else that comes from far away may pass too.
    const bool mayPass = socket.error().code() == ErrorCode::remote;
    if (!refused) refusedSince.reset();
    if (refused && !refusedSince) refusedSince = Clock::now();
    const bool nobodyListens = refused && Clock::now() - *refusedSince >= refusedLimit;
    if (!mayPass || nobodyListens || Clock::now() + pause >= deadline) return log::decided(socket.error());
    std::this_thread::sleep_for(pause);
    pause = std::min(2 * pause, std::chrono::milliseconds(200));
  }
}

}  // namespace falcon::transport
