// What checkpoints need of the other ranks of the communicator: a seam, so that tests need no job.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/types.h"

namespace falcon::reshape {

/// Collective: every rank of the communicator calls the same functions in the same order. Blocking.
class Exchange {
 public:
  virtual ~Exchange() = default;
  /// Everyone's bytes, by rank.
  virtual Result<std::vector<std::string>> allGather(std::string_view mine) = 0;
  /// Whether broadcast() can be used; alike on all ranks.
  virtual bool canBroadcast() const = 0;
  /// Among the ranks that pass the same colour: what `root` has. Every rank of the communicator calls, one whose
  /// group has nothing to send with no bytes.
  /// @param root  rank of the communicator
  virtual Status broadcast(int colour, Rank root, std::span<const std::span<std::byte>> buffers) = 0;
};

}  // namespace falcon::reshape
