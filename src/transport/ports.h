// Makes the ports of one communicator. Algorithms know only this interface, so tests run them over queues in memory.
#pragma once

#include <memory>

#include "base/clock.h"
#include "base/types.h"
#include "transport/port.h"

namespace falcon::transport {

/// Why a connection exists. Tests have connections of their own over the same pair of addresses.
enum class Lane : std::uint8_t { ring, tree, direct, peerToPeer, test, probe };

/// How bytes to a peer travel; socket: through the network, by our sockets or by a net plugin.
enum class Medium : std::uint8_t { self, sharedMemory, socket };

/// Names one directed connection: both ends open it with the same channel and lane.
struct PortKey {
  Rank peer = -1;  ///< rank of the communicator; may be one's own (Medium::self)
  int channel = 0;
  Lane lane = Lane::ring;
  auto operator<=>(const PortKey&) const = default;
};

/// Thread-safe; the ports themselves are used by one thread at a time. Opening never blocks: a port that is not
/// connected yet gives no credit and no data. Opening the same key again gives the same connection (ports are kept
/// open).
class Ports {
 public:
  virtual ~Ports() = default;
  virtual Result<SendPort*> openSend(const PortKey& key) = 0;
  virtual Result<ReceivePort*> openReceive(const PortKey& key) = 0;
  virtual Medium mediumTo(Rank peer) const = 0;
  /// That peer has left in good order: who still waits for a connection with it, or asks for one, gets an error. All
  /// that it has ever sent came over connections that are there.
  virtual void left(Rank) {}
  /// What has left for that peer so far, over all connections; sockets count headers too. 0 where nobody counts.
  virtual std::uint64_t bytesSentTo(Rank) const { return 0; }
};

/// Sleeps until one of `sources` may have something, at most `limit`; may return early. Doorbell sources wake by futex.
/// Mixed sources are polled about every millisecond. Safe from any thread.
class Waiter {
 public:
  virtual ~Waiter() = default;
  virtual void wait(std::span<const WaitSource> sources, Nanoseconds limit) = 0;
  /// The same for who has looked again and again already: sleeps at once.
  virtual void sleep(std::span<const WaitSource> sources, Nanoseconds limit) { wait(sources, limit); }
  /// A ticket taken before looking for work; wait() returns at once if the doorbell rang since.
  virtual void prepare() = 0;
};

}  // namespace falcon::transport
