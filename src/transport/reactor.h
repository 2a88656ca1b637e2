// The process's one service thread: accepts connections, hands them to whom they are for, and watches sockets.
// It exists from the first communicator (or ncclGetUniqueId) on; it sleeps in poll without a timeout.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/owned.h"
#include "base/result.h"
#include "base/socket_address.h"
#include "base/types.h"

namespace falcon::transport {

/// Proof of belonging, from the unique id. Compared in constant time.
using Secret = std::array<std::byte, 16>;

/// A pulse carries nothing: idle, it shows by keepalive alone whether a host still answers.
enum class Purpose : std::uint8_t { rendezvous, communicator, data, bus, pulse };

/// The first bytes on every connection of ours; a stranger's bytes are dropped and logged.
struct Hello {
  Purpose purpose = Purpose::data;
  std::uint64_t key = 0;  ///< communicator id, rendezvous id or bus id: whom it is for
  Secret secret{};
  Rank from = -1;
  std::string payload;  ///< at most 4096 bytes, meaning depends on the purpose
  /// Not sent. False: this process has no file descriptor to keep the connection, and has waited for one; what needs
  /// the connection has to fail. The socket is for a last word only, not to be kept.
  bool admitted = true;
};

/// Thread-safe. Handlers run on the reactor's thread and must not block.
class Reactor {
 public:
  using ConnectionHandler = std::function<void(FileDescriptor socket, const Hello& hello)>;
  using EventHandler = std::function<void(short events)>;

  virtual ~Reactor() = default;

  /// Where peers reach this process; the interface is chosen by NCCL_SOCKET_IFNAME.
  virtual SocketAddress address() const = 0;

  /// Connections for (purpose, key) with that secret go to `handler`. Those that come before anyone expects them wait
  /// up to 60 s (a peer may be faster than us); to a rendezvous nobody comes before it is open, only too late, and they
  /// are hung up on. Who comes with another secret is dropped; `refusal` are bytes to be
  /// sent to it first.
  virtual void expect(Purpose purpose, std::uint64_t key, const Secret& secret, ConnectionHandler handler,
                      std::string refusal) = 0;
  void expect(Purpose purpose, std::uint64_t key, const Secret& secret, ConnectionHandler handler) {
    expect(purpose, key, secret, std::move(handler), {});
  }
  /// After it returns the handler is not running and will not run again (unless called from the handler itself).
  virtual void forget(Purpose purpose, std::uint64_t key) = 0;

  /// Calls `handler` whenever poll reports `events` (or hang-up, error) on `descriptor`, which stays the caller's.
  virtual void watch(int descriptor, short events, EventHandler handler) = 0;
  /// Same promise as forget().
  virtual void unwatch(int descriptor) = 0;
  /// Runs `work` on the reactor's thread soon.
  virtual void post(std::function<void()> work) = 0;
};

/// The process's reactor, started on first use; a forked child gets its own.
Result<std::shared_ptr<Reactor>> processReactor();

/// Listens and starts a thread; for tests and for the rendezvous on NCCL_COMM_ID. Port 0: any.
Result<std::shared_ptr<Reactor>> makeReactor(const SocketAddress& listenOn);

/// Connects from `from` (its port is ignored; empty: any) to `to`, sets no-delay and, towards another host, keepalive
/// (NCCL_FALCON_DEATH_TIMEOUT), and sends the hello. Tries again what may pass until `limit`; where nobody has listened
/// for `refusedLimit`, it gives up before. The socket does not block. No user timeout on data: it would end a
/// connection whose receiver computes for that long without reading.
Result<FileDescriptor> connectWithHello(const SocketAddress& from, const SocketAddress& to, const Hello& hello,
                                        Nanoseconds limit, Nanoseconds refusedLimit = Nanoseconds::max());

/// How long who is refused tries again where somebody has listened already: a port that is closed stays closed.
inline constexpr Nanoseconds goneLimit = 2s;

/// The address of the interface that NCCL_SOCKET_IFNAME allows; loopback only when there is nothing else. Port 0.
Result<SocketAddress> chooseInterfaceAddress();

}  // namespace falcon::transport
