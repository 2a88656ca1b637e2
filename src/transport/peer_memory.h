// Reads and writes the memory of another rank on the same node without its help (cross-memory attach).
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/result.h"

namespace falcon::transport {

/// Where a process may be read, and how to know that it is the right one.
struct MemoryOffer {
  int process = 0;            ///< its id, in its own namespace; 0: it must not be read
  std::uint64_t nonceAt = 0;  ///< address of `nonce` there
  std::uint64_t nonce = 0;    ///< random, one for each process
};

/// This process's own. `allowed` false: others are not to read it.
MemoryOffer ownMemoryOffer(bool allowed);

/// Thread-safe. Works for ranks of this process too, and is used there: memory that a failed rank has freed meanwhile
/// is an error here and would be a crash with a plain copy.
class PeerMemory {
 public:
  /// Reads the nonce first: in another pid namespace the id may be a stranger's. Errors (system): not permitted, or not
  /// the peer.
  static Result<PeerMemory> attach(const MemoryOffer& offer);

  /// Copies `bytes` from the peer's `address`. Errors: (remote) it died, (system) what it said is not
  /// memory that can be read.
  /// `last`: nothing more is read for this operation; the nonce is read once more, after the data, so that the memory
  /// of a process that took a dead peer's id never passes for the peer's.
  Status read(std::byte* to, std::uint64_t address, std::size_t bytes, bool last) const;
  /// The other way round. The nonce is read before each part: a process that took a dead peer's id is not written to.
  Status write(const std::byte* from, std::uint64_t address, std::size_t bytes) const;

 private:
  /// Error: it cannot be read, or is not the peer.
  Status checkNonce() const;

  MemoryOffer peer_;
};

}  // namespace falcon::transport
