// AllToAll, Gather and Scatter as messages between blocks of the buffers.
#pragma once

#include "base/call.h"

namespace falcon::collectives {

// Messages of AllToAll, Gather and Scatter must not mix with Send and Receive between the same ranks.
inline constexpr int messageChannel = 0;
inline constexpr int exchangeChannel = 1;

/// Tells `sink` this rank's part, blocks by number: send(peer, block of the input), receive(peer, block of the output),
/// copy(block of the input, block of the output).
template <class Sink>
void visitExchange(Rank self, int size, const Call& call, Sink& sink) {
  const bool isRoot = self == call.peer;
  // Starting with itself, then its neighbours, so that not all ranks turn to rank 0 first.
  for (int distance = 0; distance < size; ++distance) {
    const Rank to = (self + distance) % size;
    const Rank from = (self + size - distance) % size;
    switch (call.operation) {
      case Operation::allToAll:
        if (distance == 0) sink.copy(self, self);
        if (distance > 0) sink.send(to, to), sink.receive(from, from);
        break;
      case Operation::gather:
        if (isRoot && distance == 0) sink.copy(0, self);
        if (isRoot && distance > 0) sink.receive(from, from);
        if (!isRoot && to == call.peer) sink.send(to, 0);
        break;
      default:  // scatter
        if (isRoot && distance == 0) sink.copy(self, 0);
        if (isRoot && distance > 0) sink.send(to, to);
        if (!isRoot && from == call.peer) sink.receive(from, 0);
    }
  }
}

}  // namespace falcon::collectives
