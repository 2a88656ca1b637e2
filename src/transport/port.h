// One direction of one connection between two ranks, as the algorithms see it: a queue of chunks with credit.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "base/clock.h"
#include "base/result.h"

namespace falcon::transport {

/// What a stuck operation waits for, so that its driver can sleep.
struct WaitSource {
  enum class Kind { none, doorbell, socket } kind = Kind::none;
  int descriptor = -1;  ///< kind socket
  short events = 0;     ///< kind socket: POLLIN or POLLOUT
};

/// The sending end. Used by one thread at a time; never blocks.
class SendPort {
 public:
  virtual ~SendPort() = default;
  /// Capacity of one chunk; the same on both ends, constant over the port's life.
  virtual std::size_t chunkBytes() const = 0;
  /// Memory for the next chunk, chunkBytes() long; empty while the peer gave no credit or is not connected yet.
  /// Repeated calls give the same memory until commit().
  virtual Result<std::span<std::byte>> acquire() = 0;
  /// Sends the first `bytes` of the acquired chunk (may be 0). Order is kept.
  virtual void commit(std::size_t bytes) = 0;
  /// Whether commitFrom() is to be used for a chunk of `bytes`.
  virtual bool sendsInPlace(std::size_t) const { return false; }
  /// Sends `data`, which stays as it is until flushed(), instead of what is in the acquired chunk: saves a copy.
  /// `more`: the next chunk follows at once, and this one may leave together with it, or at progress().
  virtual void commitFrom(std::span<const std::byte>, bool /*more*/) {}
  /// Moves what it can; true if anything moved. Call it while chunks are pending.
  virtual Result<bool> progress() = 0;
  /// Nothing committed is waiting inside this process any more.
  virtual bool flushed() const = 0;
  virtual WaitSource waitSource() const = 0;
  /// How long bytes have been on their way so far, as far as the network counts that: they go on when they have left
  /// this process. Nothing where nobody counts. May be a system call.
  virtual std::optional<Nanoseconds> underWay() const { return std::nullopt; }
};

/// The receiving end. Used by one thread at a time; never blocks.
class ReceivePort {
 public:
  virtual ~ReceivePort() = default;
  virtual std::size_t chunkBytes() const = 0;
  /// True when the next chunk is completely there; then `chunk()` shows it until release().
  virtual Result<bool> ready() = 0;
  /// As ready(), for who expects a chunk of `to.size()` bytes and copies it there: it may be put there at once, and
  /// then `chunk()` is `to`. Called again with the same `to` until true.
  virtual Result<bool> readyInto(std::span<std::byte>) { return ready(); }
  virtual std::span<const std::byte> chunk() const = 0;
  /// Gives the chunk's memory back to the sender (credit).
  virtual void release() = 0;
  virtual WaitSource waitSource() const = 0;
};

}  // namespace falcon::transport
