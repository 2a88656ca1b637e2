// Makes a GPU see what has come: bytes that the network device has written may still be on their way over PCIe when it
// says that they are there. A read by the same device of the same memory pushes them, and is done once they are.
#pragma once

#include <memory>

#include "verbs/queue_pair.h"

namespace falcon::net {

/// A queue pair that is connected to itself. Used by one thread at a time.
class Flusher {
 public:
  /// Completions come to the queue of `share`, which outlives it, as Work::flush.
  static Result<std::unique_ptr<Flusher>> make(QueuePair& share);

  Status read(const void* from, const VerbsMemory& memory, std::uint64_t number);

 private:
  Flusher() = default;

  std::byte to_{};
  std::unique_ptr<VerbsMemory> memory_;
  std::unique_ptr<QueuePair> pair_;  // gone before the memory
};

}  // namespace falcon::net
