// What two ends agree on when a connection is made: the sender's offer rides on the hello, the receiver answers one
// byte.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "transport/ports.h"

namespace falcon::transport {

/// The most channels a communicator can have, with room to spare; the bound for what a peer may claim.
inline constexpr int channelLimit = 1024;

struct ConnectionOffer {
  int channel = 0;
  Lane lane = Lane::ring;
  std::uint64_t chunkBytes = 0;
  std::string segment;   ///< shared memory to use; "": the socket
  std::string doorbell;  ///< of the sender, rung when a chunk is given back
  int stream = 0;        ///< which one of the connection's sockets this is
  int streams = 1;       ///< of how many; more than one carry no segment
  /// The receiver may send over this very socket too: then what it sends acknowledges what has come, and little crosses
  /// in two thirds of the time (24 bytes there and back 9 us, over two sockets 14).
  bool bothWays = false;

  std::string encode() const;
  /// A remote error if the bytes are no offer.
  static Result<ConnectionOffer> decode(std::string_view bytes);
};

/// The receiver's byte.
enum class OfferAnswer : char {
  sharedMemory = 'm',  ///< mapped; the socket is of no more use
  socket = 's',        ///< chunks come over this very socket
  bothWays = 'b',      ///< the same, and the receiver will send over it
  mine = 'r',          ///< the receiver has dialled as well: its socket is for both ways, this one is of no use
  chunkSize = 'c',     ///< the two disagree about the size of a chunk
  noDescriptor = 'd'   ///< the receiver's process has none left
};

/// Names the inbox of one rank of one communicator: several ranks may live in one process and share a reactor.
std::uint64_t inboxKey(CommunicatorId communicator, Rank rank);

}  // namespace falcon::transport
