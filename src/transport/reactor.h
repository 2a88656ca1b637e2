// The process's one service thread: accepts connections, hands them to whom they are for, and watches sockets.
// It exists from the first communicator (or ncclGetUniqueId) on; it sleeps until there is something for it.
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

/// Proof of belonging, from the unique id. Never sent: see handshake.h.
using Secret = std::array<std::byte, 16>;

/// A pulse carries nothing: idle, it shows by keepalive alone whether a host still answers.
enum class Purpose : std::uint8_t { rendezvous, communicator, data, bus, pulse, window };

/// What opens every connection of ours (handshake.h); who does not know the secret is dropped and logged.
struct Hello {
  Purpose purpose = Purpose::data;
  std::uint64_t key = 0;  ///< communicator id, rendezvous id or bus id: whom it is for
  Secret secret{};
  Rank from = -1;
  std::string payload;  ///< at most 4096 bytes, meaning depends on the purpose
  /// Not sent. False: this process has no file descriptor to keep the connection, and has waited for one; what needs
  /// the connection has to fail. The socket is for a last word only, not to be kept.
  bool admitted = true;
  /// Not sent. Who comes does so only to say that it cannot take part: see withdraw().
  bool withdraws = false;
};

/// Thread-safe. Handlers run on the reactor's thread and must not block.
class Reactor {
 public:
  using ConnectionHandler = std::function<void(FileDescriptor socket, const Hello& hello)>;
  using EventHandler = std::function<void(short events)>;

  virtual ~Reactor() = default;

  /// Where peers reach this process; the interface is chosen by NCCL_SOCKET_IFNAME.
  virtual SocketAddress address() const = 0;

  /// Connections for (purpose, key) of whom knows that secret go to `handler`. Those that come before anyone expects
  /// them wait up to 60 s (a peer may be faster than us); to a rendezvous nobody comes before it is open, only too
  /// late, and they are hung up on. Who does not know the secret is dropped.
  virtual void expect(Purpose purpose, std::uint64_t key, const Secret& secret, ConnectionHandler handler) = 0;
  /// After it returns the handler is not running and will not run again (unless called from the handler itself).
  virtual void forget(Purpose purpose, std::uint64_t key) = 0;

  /// Calls `handler` whenever poll reports `events` (or hang-up, error) on `descriptor`, which stays the caller's.
  virtual void watch(int descriptor, short events, EventHandler handler) = 0;
  /// Same promise as forget().
  virtual void unwatch(int descriptor) = 0;
  /// A timer that calls `ring` once each time that it is set (alarm.h). It takes no descriptor.
  virtual std::uint64_t addTimer(std::function<void()> ring) = 0;
  /// Replaces the time set before. Takes no memory.
  virtual void setTimer(std::uint64_t timer, Nanoseconds fromNow) = 0;
  /// Same promise as forget().
  virtual void removeTimer(std::uint64_t timer) = 0;
  /// Runs `work` on the reactor's thread soon.
  virtual void post(std::function<void()> work) = 0;
};

/// The process's reactor, started on first use; a forked child gets its own.
Result<std::shared_ptr<Reactor>> processReactor();

/// Listens and starts a thread; for tests and for the rendezvous on NCCL_COMM_ID. Port 0: any. Errors: invalidUsage:
/// this process can never listen there, as the address is not its host's; system: it cannot now, `portTaken` says
/// whether only because somebody else does.
Result<std::shared_ptr<Reactor>> makeReactor(const SocketAddress& listenOn, bool* portTaken = nullptr);

/// Who is there where a connection is to go, as far as is seen. Silent: it has accepted one and says nothing.
enum class Listener { none, silent, hungUp };

/// Connects from `from` (its port is ignored; empty: any) to `to`, sets no-delay and, towards another host, keepalive
/// (NCCL_FALCON_DEATH_TIMEOUT); then both prove to each other that they know the secret (handshake.h), for which
/// somebody has to expect the connection there. Tries again what may pass until `limit`, or until `givenUp` says so;
/// where nobody has listened for `refusedLimit`, it gives up before. To a rendezvous that hangs up
/// it does not try again, that is over. `seen` says while it tries whom it has met. An error of code invalidUsage: what
/// listens there does not know the secret. The socket does not block. No user timeout on data: it would end a
/// connection whose receiver computes for that long without reading.
Result<FileDescriptor> connectWithHello(const SocketAddress& from, const SocketAddress& to, const Hello& hello,
                                        Nanoseconds limit, Nanoseconds refusedLimit = Nanoseconds::max(),
                                        const std::function<bool()>& givenUp = {}, Listener* seen = nullptr);

/// For who is expected at `to` and cannot come, for want of whatever: proves that it knows the secret, as who comes
/// does, and leaves `hello.payload`, which says why. Needs no random bytes and no address of its own, and raises the
/// soft limit of descriptors. Returns when it was heard, or `limit` has passed.
void withdraw(const SocketAddress& to, Hello hello, Nanoseconds limit);

/// How long who cannot come tries to say so: longer than it lies at the door of who has no descriptor for it
/// (reception.cc), which may lack them for the same reason.
inline constexpr Nanoseconds withdrawalLimit = 8s;

/// How long who is refused tries again where somebody has listened already: a port that is closed stays closed.
inline constexpr Nanoseconds goneLimit = 2s;

/// The address of the interface that NCCL_SOCKET_IFNAME allows; loopback only when there is nothing else. Port 0.
Result<SocketAddress> chooseInterfaceAddress();

}  // namespace falcon::transport
