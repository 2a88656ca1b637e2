#include "transport/chunk_ring.h"

#include <new>

namespace falcon::transport {
namespace {

// A counter of the other end: never behind what it was, never ahead of what it can be.
bool plausible(std::uint64_t counter, std::uint64_t least, std::uint64_t most) {
  return counter - least <= most - least;
}

// No constructor runs: zeroes are a new ring, and neither end may wipe what the other has written already.
ChunkRing* ringIn(std::span<std::byte> memory) {
  return std::launder(reinterpret_cast<ChunkRing*>(memory.data()));
}

}  // namespace

ChunkProducer::ChunkProducer(std::span<std::byte> memory, std::size_t chunkBytes)
    : ring_(ringIn(memory)), data_(memory.data() + ChunkRing::dataOffset), chunkBytes_(chunkBytes) {}

RingState ChunkProducer::state() {
  if (ring_->receiverClosed.load(std::memory_order_acquire)) return RingState::closed;
  if (produced_ - knownConsumed_ < chunkSlots) return RingState::ready;
  const auto consumed = ring_->consumed.load(std::memory_order_acquire);
  if (!plausible(consumed, knownConsumed_, produced_)) return RingState::nonsense;
  knownConsumed_ = consumed;
  return produced_ - consumed < chunkSlots ? RingState::ready : RingState::stuck;
}

std::span<std::byte> ChunkProducer::slot() {
  return {data_ + produced_ % chunkSlots * ChunkRing::stride(chunkBytes_), chunkBytes_};
}

void ChunkProducer::publish(std::size_t bytes) {
  ring_->lengths[produced_ % chunkSlots].store(bytes, std::memory_order_relaxed);
  ring_->produced.store(++produced_, std::memory_order_release);
}

ChunkConsumer::ChunkConsumer(std::span<std::byte> memory, std::size_t chunkBytes)
    : ring_(ringIn(memory)), data_(memory.data() + ChunkRing::dataOffset), chunkBytes_(chunkBytes) {}

RingState ChunkConsumer::state() {
  if (knownProduced_ == consumed_) {
    // Closed is read first: what was published before closing is then visible below.
    const bool closed = ring_->senderClosed.load(std::memory_order_acquire);
    const auto produced = ring_->produced.load(std::memory_order_acquire);
    if (!plausible(produced, knownProduced_, consumed_ + chunkSlots)) return RingState::nonsense;
    knownProduced_ = produced;
    if (produced == consumed_) return closed ? RingState::closed : RingState::stuck;
  }
  const std::size_t slot = consumed_ % chunkSlots;
  // Read once: the other end could change it between the check and the use.
  const auto length = ring_->lengths[slot].load(std::memory_order_relaxed);
  if (length > chunkBytes_) return RingState::nonsense;
  chunk_ = {data_ + slot * ChunkRing::stride(chunkBytes_), static_cast<std::size_t>(length)};
  return RingState::ready;
}

void ChunkConsumer::release() {
  chunk_ = {};
  ring_->consumed.store(++consumed_, std::memory_order_release);
}

}  // namespace falcon::transport
