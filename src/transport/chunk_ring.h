// A queue of chunks in one piece of memory, between one sender and one receiver that may live in different processes.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

namespace falcon::transport {

/// Chunks a connection holds at most.
inline constexpr std::size_t chunkSlots = 8;

/// The memory as both ends see it, new when all zero; the chunks follow at `dataOffset`. Counters only grow; a
/// counter's slot is its rest by chunkSlots.
struct ChunkRing {
  static constexpr std::size_t dataOffset = 4096;
  /// Bytes that a ring of such chunks takes.
  static constexpr std::size_t bytesFor(std::size_t chunkBytes) { return dataOffset + chunkSlots * stride(chunkBytes); }
  static constexpr std::size_t stride(std::size_t chunkBytes) { return (chunkBytes + 63) / 64 * 64; }

  // The sender's and the receiver's words on cache lines of their own.
  alignas(64) std::atomic<std::uint64_t> produced{0};
  std::array<std::atomic<std::uint64_t>, chunkSlots> lengths{};
  std::atomic<bool> senderClosed{false};
  alignas(64) std::atomic<std::uint64_t> consumed{0};
  std::atomic<bool> receiverClosed{false};
};
static_assert(sizeof(ChunkRing) <= ChunkRing::dataOffset);
static_assert(std::atomic<std::uint64_t>::is_always_lock_free && std::atomic<bool>::is_always_lock_free);

/// What an end may find.
enum class RingState : std::uint8_t {
  stuck,    ///< no free slot, or no chunk
  ready,    ///< there is one
  closed,   ///< the other end has left; chunks it sent before have been read
  nonsense  ///< the other end wrote values that cannot be
};

/// The sending end. Used by one thread.
class ChunkProducer {
 public:
  /// @param memory  ChunkRing::bytesFor(chunkBytes) long, page-aligned, zero when the first end comes
  ChunkProducer(std::span<std::byte> memory, std::size_t chunkBytes);

  RingState state();
  /// The next slot; after state() said ready.
  std::span<std::byte> slot();
  void publish(std::size_t bytes);
  void close() { ring_->senderClosed.store(true, std::memory_order_release); }

 private:
  ChunkRing* ring_;
  std::byte* data_;
  std::size_t chunkBytes_;
  std::uint64_t produced_ = 0;
  std::uint64_t knownConsumed_ = 0;
};

/// The receiving end. Used by one thread.
class ChunkConsumer {
 public:
  ChunkConsumer(std::span<std::byte> memory, std::size_t chunkBytes);

  RingState state();
  /// The next chunk; after state() said ready.
  std::span<const std::byte> chunk() const { return chunk_; }
  void release();
  void close() { ring_->receiverClosed.store(true, std::memory_order_release); }

 private:
  ChunkRing* ring_;
  const std::byte* data_;
  std::size_t chunkBytes_;
  std::uint64_t consumed_ = 0;
  std::uint64_t knownProduced_ = 0;
  std::span<const std::byte> chunk_;
};

}  // namespace falcon::transport
