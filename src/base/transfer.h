// What per-channel timing measures: for one operation, one channel, one peer, one direction.
#pragma once

#include <cstdint>

#include "base/clock.h"
#include "base/types.h"

namespace falcon {

/// Transfer time and waiting time are kept apart: on a link, data in flight is slow while both ends are ready;
/// a late peer shows as waiting.
struct TransferTiming {
  CommunicatorId communicator = 0;
  std::uint64_t sequence = 0;  ///< of the call, as in CallRecord
  std::int32_t channel = 0;
  Rank peer = -1;  ///< rank of the communicator
  bool sending = false;
  /// They go to the next one of the ring: another order would take them another way.
  bool aroundRing = false;
  std::uint64_t bytes = 0;
  Nanoseconds start{0};    ///< the first chunk was ready to move
  Nanoseconds stop{0};     ///< the last chunk had moved
  Nanoseconds waiting{0};  ///< sender: no credit from the receiver; receiver: nothing had arrived
  Nanoseconds moving{0};   ///< data were in flight or being copied
  /// How long bytes of this connection had been under way when the transfer began and when it ended, as the network
  /// counts them, which goes on when they have left the process; negative: nobody counts.
  Nanoseconds underWayBefore{-1}, underWayAfter{-1};
  std::uint64_t connection = 0;  ///< tells connections of the same peer and channel apart
};

}  // namespace falcon
