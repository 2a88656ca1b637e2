// How large the chunks of a connection are: what a rank's memory for connections comes to.
#pragma once

#include <algorithm>
#include <cstddef>

#include "transport/chunk_ring.h"
#include "transport/ports.h"

namespace falcon::transport {

/// What one rank spends on the buffers of messages, its connections to all others together. Rings and trees have a few
/// neighbours whatever the number of ranks; a message may go to anybody.
inline constexpr std::size_t messageBuffers = 32 << 20;

/// Collectives that turn to many others do so with little.
inline constexpr std::size_t mostDirectChunk = 64 << 10;

/// The same on all ranks of a communicator that agree on NCCL_BUFFSIZE. From 16 ranks on messages have smaller chunks
/// than the rest, until a page is the least.
constexpr std::size_t chunkBytesFor(Lane lane, std::size_t bufferBytes, int ranks) {
  const std::size_t whole = bufferBytes / chunkSlots;
  if (lane == Lane::direct) return std::min(chunkBytesFor(Lane::peerToPeer, bufferBytes, 2 * ranks), mostDirectChunk);
  if (lane != Lane::peerToPeer || ranks < 2) return whole;
  // To each peer and back, twice: Send and Receive have connections of their own beside those of AllToAll, Gather and
  // Scatter. A sender by socket has eight chunks, its receiver half as many; in shared memory they use the same eight.
  constexpr std::size_t chunksAPeer = 2 * (chunkSlots + chunkSlots / 2);
  constexpr std::size_t page = 4096;
  const std::size_t share = messageBuffers / chunksAPeer / static_cast<std::size_t>(ranks - 1) / page * page;
  return std::min(whole, std::max(share, page));
}

}  // namespace falcon::transport
