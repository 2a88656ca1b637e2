// What a framework has registered as its state: named buffers of host memory.
#pragma once

#include <cstddef>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace falcon::reshape {

struct StateBuffer {
  std::string name;
  std::byte* data = nullptr;
  std::size_t bytes = 0;
  bool replicated = false;  ///< alike on all data-parallel replicas; else this rank's own

  std::span<std::byte> span() const { return {data, bytes}; }
};

/// Bytes of all of them together.
std::size_t bytesOf(std::span<const StateBuffer> buffers);

/// Thread-safe. The buffers are the framework's and outlive their registration.
class RegisteredState {
 public:
  static constexpr std::size_t longestName = 127;

  /// Errors (invalidArgument): no name or one of other than 1 to 127 visible ASCII characters, a name that is taken,
  /// null, no bytes.
  Status add(const StateBuffer& buffer);
  /// Errors (invalidArgument): no such name.
  Status remove(std::string_view name);
  /// Those of one kind, in the order of their names: alike on all ranks, in whatever order they were registered.
  std::vector<StateBuffer> buffers(bool replicated) const;
  /// All of them, in that order.
  std::vector<StateBuffer> buffers() const;
  /// Those of another role take the place of all.
  void replace(std::vector<StateBuffer> buffers);
  bool empty() const;
  /// Of all of them.
  std::size_t bytes() const;

 private:
  mutable std::mutex mutex_;
  std::vector<StateBuffer> buffers_;
};

}  // namespace falcon::reshape
