// The real Ports: shared memory inside a node, sockets between nodes, a queue to oneself.
#pragma once

#include <span>
#include <vector>

#include "transport/ports.h"
#include "transport/reactor.h"

namespace falcon::transport {

/// What a rank must know of another to open ports to it. Exchanged at communicator init.
struct Peer {
  SocketAddress address;      ///< of its reactor
  std::string node;           ///< ranks with equal node share memory
  std::uint64_t process = 0;  ///< random id of the process; equal: same process
  std::string doorbell;       ///< name of its process's doorbell (see Doorbell), "" where memory is not to be shared
  Rank jobRank = -1;          ///< for link throttling and messages
};

/// This process's part of the above, all but the rank. Opens the process's doorbell on first use.
Result<Peer> localPeer(Reactor& reactor);

/// Whether the two are on one node and both have memory to share. The same on both.
bool mayShareMemory(const Peer& one, const Peer& other);
/// For messages: "rank 3 (10.0.0.2:4000)".
std::string describe(Rank rank, const Peer& peer);

/// Ports for one communicator. `peers[r]` is rank r; `self` is this rank. The reactor outlives the ports.
/// Chunks: see chunk_size.h; eight a connection.
Result<std::unique_ptr<Ports>> makeLocalPorts(std::shared_ptr<Reactor> reactor, CommunicatorId communicator,
                                              const Secret& secret, Rank self, std::vector<Peer> peers);

/// Waits on the process's doorbell and on sockets.
std::unique_ptr<Waiter> makeWaiter();
/// Wakes all waiters of this process (abort, hold lifted).
void ringOwnDoorbell();

}  // namespace falcon::transport
